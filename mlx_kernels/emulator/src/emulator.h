// What the emulator's parts share: the running threadgroup, its threads as fibers, its memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace emulator {

// Metal's limits: Metal Feature Set Tables, families Apple7 and later.
constexpr unsigned kLanes = 32;
constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxBuffers = 31;
constexpr size_t kMaxThreadgroupBytes = 32768;

// Every buffer has a slot of its own in one reserved address range, so that an address names its
// buffer by a shift, and one past the end of a buffer is never inside another.
constexpr unsigned kSlotShift = 34;
constexpr uintptr_t kSlotBytes = uintptr_t(1) << kSlotShift;
constexpr uintptr_t kSlotLead = 1 << 16;

constexpr size_t kStackBytes = 256 * 1024;
constexpr size_t kThreadgroupArena = 256 * 1024;
constexpr size_t kRedZone = 256;
constexpr unsigned kMaxVariables = 256;

enum FaultKind : int32_t {
  kNoFault = 0,
  kOutOfBounds = 1,
  kMisaligned = 2,
  kWriteToInput = 3,
  kUninitialisedRead = 4,
  kRace = 5,
  kDivergentBarrier = 6,
  kDivergentSimdgroup = 7,
  kThreadgroupMemory = 8,
  kInactiveLane = 9,
  kArrayIndex = 10,
};

struct Fault {
  int32_t kind;
  int32_t is_write;
  int32_t buffer;           // index of the buffer, or -1
  int32_t variable;         // index of the threadgroup variable, or -1
  int64_t offset;           // in bytes, from the start of the buffer or variable
  int64_t size;             // of the access, in bytes
  uint32_t threadgroup[3];
  uint32_t thread;          // index in the threadgroup
  uint32_t other_thread;    // the thread that the fault is with, or ~0
  int32_t other_is_write;
  int32_t other_threadgroup;  // 1: the other thread is of another threadgroup
  uint64_t pc;              // of the access, to find its source line
  const char* file;         // of a collective, where it names its own place
  uint32_t line;
  const char* other_file;
  uint32_t other_line;
  char what[128];
};

struct BufferArgument {
  void* data;             // host memory: copied in before the run, and out after it if writable
  uint64_t bytes;
  int32_t writable;
  int32_t initialised;    // 0: reading a byte that nobody wrote is a fault
  // Counted by the run.
  uint64_t loaded, stored;
  uint64_t simdgroup_loads, scattered_loads;
};

// The words of this struct are numbered in compile.py.
struct Position {
  uint32_t thread_position_in_grid[3];
  uint32_t thread_position_in_threadgroup[3];
  uint32_t threadgroup_position_in_grid[3];
  uint32_t threads_per_threadgroup[3];
  uint32_t dispatch_threads_per_threadgroup[3];
  uint32_t threads_per_grid[3];
  uint32_t threadgroups_per_grid[3];
  uint32_t thread_index_in_threadgroup;
  uint32_t thread_index_in_simdgroup;
  uint32_t simdgroup_index_in_threadgroup;
  uint32_t simdgroups_per_threadgroup;
  uint32_t dispatch_simdgroups_per_threadgroup;
  uint32_t threads_per_simdgroup;
  uint32_t thread_index_in_quadgroup;
  uint32_t quadgroup_index_in_threadgroup;
  uint32_t quadgroups_per_threadgroup;
  uint32_t dispatch_quadgroups_per_threadgroup;
  uint32_t grid_origin[3];
};

using Launch = void (*)(void* const* buffers, const Position* position);

enum Order : int32_t { kForward = 0, kReverse = 1, kShuffled = 2 };

struct Run {
  Launch launch;
  BufferArgument* buffers;
  int32_t buffer_count;
  int32_t order;
  uint32_t seed;
  uint32_t grid[3];
  uint32_t threadgroup[3];
  const uint64_t* sample;   // linear indices of the threadgroups to run, or null for all
  uint64_t sample_count;
  // Filled by the run.
  uint64_t static_start, static_end;  // the kernel's library: constants may be read there
  uint64_t threadgroups_run;
  uint64_t barriers;
  uint64_t threadgroup_bytes;
  uint64_t threadgroup_loaded, threadgroup_stored;
  Fault fault;
};

// Who wrote and who read one byte last, and when. A clock of 0 means never, 1 the host.
struct Cell {
  uint32_t written, read;
  uint16_t writer, reader;
};
constexpr uint32_t kHostClock = 1;
constexpr uint16_t kAtomicThread = 0xffff;  // an atomic operation, by any thread
constexpr uint16_t kManyLanes = 0x8000;     // plus the simdgroup: several lanes of it
constexpr uint16_t kManyThreads = 0xfffe;   // threads of several simdgroups

struct Buffer {
  uintptr_t start;
  uint64_t bytes;
  bool writable;
  Cell* cells;            // null for an input
  size_t cells_mapped;
  uint64_t loaded, stored, simdgroup_loads, scattered_loads;
};

struct Variable {
  int id;
  const char* name;
  uintptr_t start;
  size_t bytes;
};

struct Thread {
  void* stack_pointer;
  uint16_t index, lane, simdgroup;
  uint8_t rank;           // place in the order in which its simdgroup's lanes run
  bool done, at_barrier;
  const char* file;       // of the barrier it waits at
  uint32_t line;
  unsigned barrier_flags;
  Position position;
  // Loads since the simdgroup last met, to see which of them are contiguous.
  uint32_t load_cursor;
  uint32_t load_run;
  uintptr_t load_end;
};

struct LoadGroup {
  uintptr_t first, last;
  uint32_t bytes;
  int32_t buffer;
};

struct Simdgroup;
using Combine = void (*)(Simdgroup&, unsigned parity);

struct Simdgroup {
  // Masks have a bit a rank.
  uint32_t live, arrived, at_barrier;
  unsigned parity;
  uint16_t thread_of_rank[kLanes];
  uint8_t rank_of_lane[kLanes];
  uint32_t present_lanes;   // a bit a lane
  int op;
  const char* file;
  uint32_t line;
  Combine combine;
  uint32_t active_lanes[2];  // a bit a lane, of the last meeting
  uint32_t synchronised_threadgroup, synchronised_device;  // clock of its last simdgroup_barrier
  alignas(16) unsigned char slot[2][kLanes][32];
  alignas(16) unsigned char result[2][kLanes][16];
  LoadGroup* loads;
  uint32_t load_count, load_capacity;
};

struct State {
  Run* run;
  Buffer buffers[kMaxBuffers];
  void* buffer_pointers[kMaxBuffers];
  uintptr_t device_start, device_span;
  uintptr_t stack_start, stack_span;
  uintptr_t arena_start, arena_span;
  Cell* arena_cells;
  size_t arena_used;
  size_t variable_bytes;
  Variable variables[kMaxVariables];
  unsigned variable_count;
  // Threadgroups run one after the other; the clock ticks at each barrier.
  uint32_t clock, first_clock;
  uint32_t synchronised_threadgroup, synchronised_device;
  Thread threads[kMaxThreads];
  unsigned thread_count;
  Simdgroup simdgroups[kMaxThreads / kLanes];
  unsigned simdgroup_count;
  Thread* current;
  void* scheduler;
  uint64_t barriers;
  uint64_t threadgroup_loaded, threadgroup_stored;
};

extern State g;

// Bits of Metal's mem_flags.
constexpr unsigned kMemDevice = 1, kMemThreadgroup = 2;

// The current lane meets its simdgroup; `combine` is run once, by the lane that completes the
// meeting. Returns the parity of the slots that this meeting used.
unsigned meet_simdgroup(int op, Combine combine, const char* file, unsigned line);

// Ends the run with this fault: never returns to the fiber.
[[noreturn]] void fail(Fault fault);
Fault fault_here(FaultKind kind);

bool map_memory();
void place_buffers();
void return_buffers();
void begin_threadgroup_memory();
void end_loads(Simdgroup& simdgroup);

}  // namespace emulator
