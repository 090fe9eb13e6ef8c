// The memory of a run. The kernel is compiled with -fsanitize=thread and linked with the functions
// below instead of the sanitizer's library: every load and store comes here first, with its address.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "emulator.h"

namespace emulator {

static uintptr_t page_up(uintptr_t n) { return (n + 4095) & ~uintptr_t(4095); }

static void* reserve(size_t bytes, int protection) {
  void* p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

bool map_memory() {
  if (g.device_start) return true;
  void* device = reserve(kSlotBytes * kMaxBuffers, PROT_NONE);
  void* stacks = reserve(kStackBytes * kMaxThreads, PROT_READ | PROT_WRITE);
  void* arena = reserve(kThreadgroupArena, PROT_READ | PROT_WRITE);
  void* cells = reserve(kThreadgroupArena * sizeof(Cell), PROT_READ | PROT_WRITE);
  if (!device || !stacks || !arena || !cells) return false;
  g.device_start = uintptr_t(device);
  g.device_span = kSlotBytes * kMaxBuffers;
  g.stack_start = uintptr_t(stacks);
  g.stack_span = kStackBytes * kMaxThreads;
  g.arena_start = uintptr_t(arena);
  g.arena_span = kThreadgroupArena;
  g.arena_cells = static_cast<Cell*>(cells);
  return true;
}

void place_buffers() {
  Run& run = *g.run;
  for (int i = 0; i < run.buffer_count; i++) {
    BufferArgument& argument = run.buffers[i];
    Buffer& buffer = g.buffers[i];
    buffer = Buffer{};
    uintptr_t slot = g.device_start + uintptr_t(i) * kSlotBytes;
    buffer.start = slot + kSlotLead;
    buffer.bytes = argument.bytes;
    buffer.writable = argument.writable;
    g.buffer_pointers[i] = argument.data ? reinterpret_cast<void*>(buffer.start) : nullptr;
    if (!argument.data) continue;
    mprotect(reinterpret_cast<void*>(slot), kSlotLead + page_up(argument.bytes + 4096),
             PROT_READ | PROT_WRITE);
    if (argument.writable) {
      buffer.cells_mapped = page_up((argument.bytes + 64) * sizeof(Cell));
      buffer.cells = static_cast<Cell*>(reserve(buffer.cells_mapped, PROT_READ | PROT_WRITE));
      if (argument.initialised)
        for (uint64_t b = 0; b < argument.bytes; b++) buffer.cells[b].written = kHostClock;
    }
    if (argument.writable && !argument.initialised) {
      memset(reinterpret_cast<void*>(buffer.start), 0xff, argument.bytes);
    } else {
      memcpy(reinterpret_cast<void*>(buffer.start), argument.data, argument.bytes);
    }
  }
}

void return_buffers() {
  Run& run = *g.run;
  for (int i = 0; i < run.buffer_count; i++) {
    BufferArgument& argument = run.buffers[i];
    Buffer& buffer = g.buffers[i];
    argument.loaded = buffer.loaded;
    argument.stored = buffer.stored;
    argument.simdgroup_loads = buffer.simdgroup_loads;
    argument.scattered_loads = buffer.scattered_loads;
    if (!argument.data) continue;
    if (argument.writable) {
      memcpy(argument.data, reinterpret_cast<void*>(buffer.start), argument.bytes);
      munmap(buffer.cells, buffer.cells_mapped);
      buffer.cells = nullptr;
    }
    void* slot = reinterpret_cast<void*>(g.device_start + uintptr_t(i) * kSlotBytes);
    size_t used = kSlotLead + page_up(argument.bytes + 4096);
    madvise(slot, used, MADV_DONTNEED);
    mprotect(slot, used, PROT_NONE);
  }
}

void begin_threadgroup_memory() {
  // Signalling garbage: a kernel that relies on zeros reads NaN.
  memset(reinterpret_cast<void*>(g.arena_start), 0xff, g.arena_used);
}

// A fault of an access: which memory it was to, and where in it.
static Fault access_fault(FaultKind kind, uintptr_t address, size_t size, bool write, void* pc) {
  Fault fault = fault_here(kind);
  fault.is_write = write;
  fault.size = int64_t(size);
  fault.pc = uint64_t(pc);
  if (address - g.device_start < g.device_span) {
    int32_t buffer = int32_t((address - g.device_start) >> kSlotShift);
    // Far above a slot's start, it is the next buffer that was left, at its lower end.
    if (buffer + 1 < g.run->buffer_count && address > g.buffers[buffer].start + kSlotBytes / 2)
      buffer++;
    if (buffer < g.run->buffer_count) {
      fault.buffer = buffer;
      fault.offset = int64_t(address) - int64_t(g.buffers[buffer].start);
    }
  } else if (address - g.arena_start < g.arena_span) {
    for (unsigned v = 0; v < g.variable_count; v++) {
      const Variable& variable = g.variables[v];
      if (address >= variable.start - kRedZone / 2 &&
          address < variable.start + variable.bytes + kRedZone / 2) {
        fault.variable = int32_t(v);
        fault.offset = int64_t(address) - int64_t(variable.start);
      }
    }
  }
  return fault;
}

[[noreturn]] static void memory_fault(FaultKind kind, uintptr_t address, size_t size, bool write,
                                      void* pc) {
  fail(access_fault(kind, address, size, write, pc));
}

// The other thread's access was earlier: by `other` at `clock`.
[[noreturn]] static void race(uintptr_t address, size_t size, bool write, void* pc, uint16_t other,
                              bool other_wrote, uint32_t clock) {
  Fault fault = access_fault(kRace, address, size, write, pc);
  fault.other_is_write = other_wrote;
  fault.other_threadgroup = clock < g.first_clock;
  if (other < kMaxThreads) {
    fault.other_thread = other;
  } else if (other != kAtomicThread && other != kManyThreads) {
    fault.other_thread = uint32_t(other & ~kManyLanes) * kLanes;
  }
  fail(fault);
}

// True if an access at `clock` by `other` comes before what the current thread does now: by a
// barrier of the threadgroup, or one of their simdgroup. Threadgroups are never ordered.
static inline bool ordered(uint32_t clock, uint16_t other, uint32_t synchronised,
                           uint32_t simdgroup_synchronised) {
  const Thread& self = *g.current;
  if (clock < g.first_clock) return false;
  if (clock < synchronised) return true;
  if (other == self.index) return true;
  bool same_simdgroup = other < kMaxThreads ? other / kLanes == self.simdgroup
                                            : other == (kManyLanes | self.simdgroup);
  return same_simdgroup && clock < simdgroup_synchronised;
}

static inline void check_cells(Cell* cells, uintptr_t address, size_t size, bool write, void* pc,
                               bool device, bool atomic = false) {
  const Thread& self = *g.current;
  const Simdgroup& simdgroup = g.simdgroups[self.simdgroup];
  uint32_t synchronised = device ? g.synchronised_device : g.synchronised_threadgroup;
  uint32_t lanes = device ? simdgroup.synchronised_device : simdgroup.synchronised_threadgroup;
  // Threadgroup memory does not outlive its threadgroup. Device memory does: what it holds is older
  // than this run only where the host wrote it.
  uint32_t since = device ? kHostClock + 1 : g.first_clock;
  for (size_t i = 0; i < size; i++) {
    Cell& cell = cells[i];
    if (!write && (device ? cell.written == 0 : cell.written < since))
      memory_fault(kUninitialisedRead, address + i, size, write, pc);
    if (cell.written >= since && !(atomic && cell.writer == kAtomicThread) &&
        !ordered(cell.written, cell.writer, synchronised, lanes))
      race(address + i, size, write, pc, cell.writer, true, cell.written);
    if (write) {
      if (cell.read >= since && !(atomic && cell.reader == kAtomicThread) &&
          !ordered(cell.read, cell.reader, synchronised, lanes))
        race(address + i, size, write, pc, cell.reader, false, cell.read);
      cell.written = g.clock;
      cell.writer = atomic ? kAtomicThread : self.index;
      continue;
    }
    // Readers since the last barrier: one thread, several lanes of one simdgroup, or more.
    uint16_t reader = atomic ? kAtomicThread : self.index;
    if (cell.read >= synchronised && cell.reader != reader) {
      bool same = cell.reader < kMaxThreads ? cell.reader / kLanes == self.simdgroup
                                            : cell.reader == (kManyLanes | self.simdgroup);
      reader = same && !atomic ? kManyLanes | self.simdgroup : kManyThreads;
    }
    cell.read = g.clock;
    cell.reader = reader;
  }
}

// Adjacent loads of one lane, up to Metal's widest vector load of 16 bytes, count as one load, as
// its compiler joins them. The n-th loads of a simdgroup's lanes since they last met are one load of
// the simdgroup: contiguous if it spans no more bytes than its lanes use.
static inline void note_load(int buffer, uintptr_t address, size_t size) {
  Thread& self = *g.current;
  Simdgroup& simdgroup = g.simdgroups[self.simdgroup];
  if (address == self.load_end && self.load_run + size <= 16 && self.load_cursor) {
    LoadGroup& group = simdgroup.loads[self.load_cursor - 1];
    if (group.buffer == buffer) {
      self.load_run += uint32_t(size);
      self.load_end = address + size;
      group.bytes += uint32_t(size);
      if (address + size > group.last) group.last = address + size;
      return;
    }
  }
  uint32_t index = self.load_cursor++;
  self.load_run = uint32_t(size);
  self.load_end = address + size;
  if (index >= simdgroup.load_capacity) {
    simdgroup.load_capacity = simdgroup.load_capacity ? 2 * simdgroup.load_capacity : 256;
    simdgroup.loads = static_cast<LoadGroup*>(
        realloc(simdgroup.loads, simdgroup.load_capacity * sizeof(LoadGroup)));
    if (!simdgroup.loads) abort();
  }
  LoadGroup& group = simdgroup.loads[index];
  if (index >= simdgroup.load_count) {
    simdgroup.load_count = index + 1;
    group = {address, address + size, uint32_t(size), buffer};
    return;
  }
  if (group.buffer != buffer) {
    // Lanes that went different ways: their loads cannot be one.
    g.buffers[buffer].simdgroup_loads++;
    g.buffers[buffer].scattered_loads++;
    return;
  }
  if (address < group.first) group.first = address;
  if (address + size > group.last) group.last = address + size;
  group.bytes += uint32_t(size);
}

void end_loads(Simdgroup& simdgroup) {
  for (uint32_t i = 0; i < simdgroup.load_count; i++) {
    const LoadGroup& group = simdgroup.loads[i];
    Buffer& buffer = g.buffers[group.buffer];
    buffer.simdgroup_loads++;
    buffer.scattered_loads += group.last - group.first > group.bytes;
  }
  simdgroup.load_count = 0;
  unsigned first = unsigned(&simdgroup - g.simdgroups) * kLanes;
  for (unsigned i = first; i < first + kLanes && i < g.thread_count; i++) {
    g.threads[i].load_cursor = 0;
    g.threads[i].load_end = 0;
  }
}

static const Variable* variable_at(uintptr_t address, size_t size) {
  for (unsigned v = 0; v < g.variable_count; v++) {
    const Variable& variable = g.variables[v];
    if (address >= variable.start && address + size <= variable.start + variable.bytes)
      return &variable;
  }
  return nullptr;
}

static void access_elsewhere(uintptr_t address, size_t size, bool write, void* pc) {
  // Tables and function constants of the kernel's library may be read.
  if (!write && address >= g.run->static_start && address + size <= g.run->static_end) return;
  memory_fault(kOutOfBounds, address, size, write, pc);
}

static inline void access(uintptr_t address, size_t size, bool write, bool aligned, void* pc) {
  uintptr_t from_device = address - g.device_start;
  if (from_device < g.device_span) {
    unsigned index = unsigned(from_device >> kSlotShift);
    Buffer& buffer = g.buffers[index];
    uint64_t offset = address - buffer.start;
    if (int(index) >= g.run->buffer_count || offset > buffer.bytes ||
        offset + size > buffer.bytes)
      memory_fault(kOutOfBounds, address, size, write, pc);
    if (aligned && (address & (size - 1))) memory_fault(kMisaligned, address, size, write, pc);
    if (write) {
      if (!buffer.writable) memory_fault(kWriteToInput, address, size, write, pc);
      buffer.stored += size;
      check_cells(buffer.cells + offset, address, size, true, pc, true);
    } else {
      buffer.loaded += size;
      if (buffer.writable) check_cells(buffer.cells + offset, address, size, false, pc, true);
      note_load(int(index), address, size);
    }
    return;
  }
  if (address - g.stack_start < g.stack_span) return;
  uintptr_t from_arena = address - g.arena_start;
  if (from_arena < g.arena_span) {
    if (!variable_at(address, size)) memory_fault(kOutOfBounds, address, size, write, pc);
    if (aligned && (address & (size - 1))) memory_fault(kMisaligned, address, size, write, pc);
    (write ? g.threadgroup_stored : g.threadgroup_loaded) += size;
    check_cells(g.arena_cells + from_arena, address, size, write, pc, false);
    return;
  }
  access_elsewhere(address, size, write, pc);
}

#define HERE __builtin_return_address(0)

extern "C" {

// An atomic operation that loads, stores, or both. It orders nothing else (memory_order_relaxed is
// the only order that Metal has), but races with no other atomic operation.
void emulator_atomic_access(void* pointer, unsigned size, int loads, int stores) {
  uintptr_t address = uintptr_t(pointer);
  void* pc = HERE;
  uintptr_t from_device = address - g.device_start;
  uintptr_t from_arena = address - g.arena_start;
  Cell* cells;
  bool device = from_device < g.device_span;
  if (device) {
    Buffer& buffer = g.buffers[from_device >> kSlotShift];
    uint64_t offset = address - buffer.start;
    if (offset > buffer.bytes || offset + size > buffer.bytes)
      memory_fault(kOutOfBounds, address, size, stores, pc);
    if (stores && !buffer.writable) memory_fault(kWriteToInput, address, size, true, pc);
    if (loads) buffer.loaded += size;
    if (stores) buffer.stored += size;
    if (!buffer.writable) return;
    cells = buffer.cells + offset;
  } else if (from_arena < g.arena_span) {
    if (!variable_at(address, size)) memory_fault(kOutOfBounds, address, size, stores, pc);
    if (loads) g.threadgroup_loaded += size;
    if (stores) g.threadgroup_stored += size;
    cells = g.arena_cells + from_arena;
  } else {
    memory_fault(kOutOfBounds, address, size, stores, pc);
  }
  if (address & (size - 1)) memory_fault(kMisaligned, address, size, stores, pc);
  if (loads) check_cells(cells, address, size, false, pc, device, true);
  if (stores) check_cells(cells, address, size, true, pc, device, true);
}

// The address of a threadgroup variable; the first thread that declares it makes it.
void* emulator_threadgroup_variable(int id, uint64_t bytes, uint64_t alignment, const char* name) {
  for (unsigned v = 0; v < g.variable_count; v++)
    if (g.variables[v].id == id) return reinterpret_cast<void*>(g.variables[v].start);
  g.variable_bytes = (g.variable_bytes + alignment - 1) / alignment * alignment + bytes;
  size_t start = (g.arena_used + kRedZone + 63) & ~size_t(63);
  if (g.variable_bytes > kMaxThreadgroupBytes || g.variable_count == kMaxVariables ||
      start + bytes + kRedZone > kThreadgroupArena) {
    Fault fault = fault_here(kThreadgroupMemory);
    fault.size = int64_t(g.variable_bytes);
    strncpy(fault.what, name, sizeof(fault.what) - 1);
    fail(fault);
  }
  g.variables[g.variable_count++] = {id, name, g.arena_start + start, bytes};
  g.arena_used = start + bytes + kRedZone;
  memset(reinterpret_cast<void*>(g.arena_start + start), 0xff, bytes);
  return reinterpret_cast<void*>(g.arena_start + start);
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define ACCESS(bytes)                                                                         \
  void __tsan_read##bytes(void* p) { access(uintptr_t(p), bytes, false, true, HERE); }        \
  void __tsan_write##bytes(void* p) { access(uintptr_t(p), bytes, true, true, HERE); }        \
  void __tsan_volatile_read##bytes(void* p) { access(uintptr_t(p), bytes, false, true, HERE); } \
  void __tsan_volatile_write##bytes(void* p) { access(uintptr_t(p), bytes, true, true, HERE); } \
  void __tsan_unaligned_read##bytes(void* p) { access(uintptr_t(p), bytes, false, false, HERE); } \
  void __tsan_unaligned_write##bytes(void* p) { access(uintptr_t(p), bytes, true, false, HERE); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_read_range(void* p, uint64_t size) { access(uintptr_t(p), size, false, false, HERE); }
void __tsan_write_range(void* p, uint64_t size) { access(uintptr_t(p), size, true, false, HERE); }

// clang's names for what gcc calls a range.
void* __tsan_memcpy(void* to, const void* from, uint64_t size) {
  access(uintptr_t(from), size, false, false, HERE);
  access(uintptr_t(to), size, true, false, HERE);
  return memcpy(to, from, size);
}
void* __tsan_memmove(void* to, const void* from, uint64_t size) {
  access(uintptr_t(from), size, false, false, HERE);
  access(uintptr_t(to), size, true, false, HERE);
  return memmove(to, from, size);
}
void* __tsan_memset(void* to, int value, uint64_t size) {
  access(uintptr_t(to), size, true, false, HERE);
  return memset(to, value, size);
}

// -fsanitize=bounds: an index outside an array whose length is known, in registers or elsewhere.
// The first members of the data are the sanitizer's source location.
struct SourceLocation {
  const char* file;
  uint32_t line, column;
};
void __ubsan_handle_out_of_bounds(SourceLocation* place, void* index) {
  Fault fault = fault_here(kArrayIndex);
  fault.file = place->file;
  fault.line = place->line;
  fault.offset = int64_t(index);
  fail(fault);
}

// -fsanitize=alignment: a pointer that is used as one to a type of more alignment than it has.
struct TypeMismatch {
  SourceLocation place;
  const void* type;
  unsigned char log_alignment, kind;
};
void __ubsan_handle_type_mismatch_v1(TypeMismatch* mismatch, void* pointer) {
  uintptr_t alignment = uintptr_t(1) << mismatch->log_alignment;
  if (uintptr_t(pointer) & (alignment - 1))
    memory_fault(kMisaligned, uintptr_t(pointer), alignment, mismatch->kind == 1, HERE);
}

}  // extern "C"

}  // namespace emulator
