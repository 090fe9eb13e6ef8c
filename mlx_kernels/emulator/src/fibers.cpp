// Every GPU thread is a fiber. One threadgroup runs at a time; a fiber runs until it meets its
// simdgroup (a SIMD function), its threadgroup (a barrier), or its end.
#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "emulator.h"

extern "C" void emulator_switch(void** save, void* load);
extern "C" void emulator_fiber_start();

#if defined(__x86_64__)
asm(R"(
.text
.globl emulator_switch
.hidden emulator_switch
.type emulator_switch, @function
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulator_switch, .-emulator_switch
)");
constexpr int kSavedWords = 6;
#elif defined(__aarch64__)
asm(R"(
.text
.globl emulator_switch
.hidden emulator_switch
.type emulator_switch, %function
emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size emulator_switch, .-emulator_switch
)");
#else
#error "the emulator's fibers are written for x86-64 and aarch64"
#endif

namespace emulator {

State g;

static void switch_to(Thread& next) {
  Thread* self = g.current;
  g.current = &next;
  emulator_switch(&self->stack_pointer, next.stack_pointer);
}

static void switch_to_scheduler() {
  Thread* self = g.current;
  emulator_switch(&self->stack_pointer, g.scheduler);
}

Fault fault_here(FaultKind kind) {
  Fault fault{};
  fault.kind = kind;
  fault.buffer = fault.variable = -1;
  fault.other_thread = ~0u;
  if (g.current) {
    fault.thread = g.current->index;
    memcpy(fault.threadgroup, g.current->position.threadgroup_position_in_grid, 12);
  }
  return fault;
}

void fail(Fault fault) {
  g.run->fault = fault;
  void* abandoned;
  emulator_switch(&abandoned, g.scheduler);
  __builtin_unreachable();
}

// The next lane of the simdgroup that can run, in the order of this run; null if there is none.
static Thread* next_lane(Simdgroup& simdgroup, unsigned after_rank) {
  uint32_t runnable = simdgroup.live & ~simdgroup.arrived & ~simdgroup.at_barrier;
  if (!runnable) return nullptr;
  uint32_t later = after_rank >= 31 ? 0 : runnable & (~0u << (after_rank + 1));
  unsigned rank = __builtin_ctz(later ? later : runnable);
  return &g.threads[simdgroup.thread_of_rank[rank]];
}

static void meet(Simdgroup& simdgroup) {
  end_loads(simdgroup);
  unsigned parity = simdgroup.parity;
  uint32_t active = 0;
  for (uint32_t m = simdgroup.arrived; m; m &= m - 1)
    active |= 1u << g.threads[simdgroup.thread_of_rank[__builtin_ctz(m)]].lane;
  simdgroup.active_lanes[parity] = active;
  simdgroup.parity ^= 1;
  simdgroup.arrived = 0;
  if (simdgroup.combine) simdgroup.combine(simdgroup, parity);
}

// Leaves the current fiber, which has met something or ended: to a lane of its simdgroup that can
// run, else to the scheduler.
static void leave(Simdgroup& simdgroup) {
  Thread* self = g.current;
  if (Thread* next = next_lane(simdgroup, self->rank)) {
    switch_to(*next);
    return;
  }
  if (simdgroup.arrived) {
    Thread& waiting = g.threads[simdgroup.thread_of_rank[__builtin_ctz(simdgroup.arrived)]];
    Fault fault = fault_here(kDivergentSimdgroup);
    fault.thread = waiting.index;
    fault.file = simdgroup.file;
    fault.line = simdgroup.line;
    uint32_t others = simdgroup.at_barrier;
    if (others) {
      Thread& other = g.threads[simdgroup.thread_of_rank[__builtin_ctz(others)]];
      fault.other_thread = other.index;
      fault.other_file = other.file;
      fault.other_line = other.line;
    }
    fail(fault);
  }
  switch_to_scheduler();
}

// The current lane meets its simdgroup. Returns the parity under which values were exchanged.
unsigned meet_simdgroup(int op, Combine combine, const char* file, unsigned line) {
  Thread& self = *g.current;
  Simdgroup& simdgroup = g.simdgroups[self.simdgroup];
  unsigned parity = simdgroup.parity;
  if (!simdgroup.arrived) {
    simdgroup.op = op;
    simdgroup.file = file;
    simdgroup.line = line;
    simdgroup.combine = combine;
  } else if (simdgroup.op != op || simdgroup.line != line) {
    Fault fault = fault_here(kDivergentSimdgroup);
    fault.file = file;
    fault.line = line;
    fault.other_thread =
        g.threads[simdgroup.thread_of_rank[__builtin_ctz(simdgroup.arrived)]].index;
    fault.other_file = simdgroup.file;
    fault.other_line = simdgroup.line;
    fail(fault);
  }
  simdgroup.arrived |= 1u << self.rank;
  if (simdgroup.arrived == simdgroup.live) {
    meet(simdgroup);
  } else {
    leave(simdgroup);
  }
  return parity;
}

extern "C" void emulator_fiber_main() {
  Thread& self = *g.current;
  g.run->launch(g.buffer_pointers, &self.position);
  self.done = true;
  Simdgroup& simdgroup = g.simdgroups[self.simdgroup];
  simdgroup.live &= ~(1u << self.rank);
  if (!simdgroup.live) end_loads(simdgroup);
  // Lanes that wait for this one meet without it: a SIMD function acts on active lanes.
  if (simdgroup.arrived && simdgroup.arrived == simdgroup.live) meet(simdgroup);
  leave(simdgroup);
  __builtin_unreachable();
}

static void prepare_fiber(Thread& thread) {
  uintptr_t top = g.stack_start + (uintptr_t(thread.index) + 1) * kStackBytes;
  // Stacks that start at equal offsets would fight for the same cache sets.
  top -= (thread.index % 61) * 320 + 64;
  top &= ~uintptr_t(15);
  uintptr_t* stack = reinterpret_cast<uintptr_t*>(top);
#if defined(__x86_64__)
  *--stack = 0;
  *--stack = reinterpret_cast<uintptr_t>(&emulator_fiber_main);
  for (int i = 0; i < kSavedWords; i++) *--stack = 0;
#else
  stack -= 20;
  memset(stack, 0, 160);
  stack[11] = reinterpret_cast<uintptr_t>(&emulator_fiber_main);
#endif
  thread.stack_pointer = stack;
}

// A small generator for the shuffled order: xorshift32 (Marsaglia, 2003).
static uint32_t random_next(uint32_t& state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

template <typename T>
static void arrange(T* items, unsigned count, int order, uint32_t& random) {
  for (unsigned i = 0; i < count; i++) items[i] = T(order == kReverse ? count - 1 - i : i);
  if (order != kShuffled) return;
  for (unsigned i = count; i > 1; i--) {
    unsigned j = random_next(random) % i;
    T t = items[i - 1];
    items[i - 1] = items[j];
    items[j] = t;
  }
}

static void prepare_threadgroup(const Run& run, const uint32_t position[3],
                                const uint32_t groups[3], uint32_t& random) {
  uint32_t size[3];
  for (int d = 0; d < 3; d++) {
    uint32_t left = run.grid[d] - position[d] * run.threadgroup[d];
    size[d] = left < run.threadgroup[d] ? left : run.threadgroup[d];
  }
  g.thread_count = size[0] * size[1] * size[2];
  g.simdgroup_count = (g.thread_count + kLanes - 1) / kLanes;
  unsigned full = run.threadgroup[0] * run.threadgroup[1] * run.threadgroup[2];
  for (unsigned i = 0; i < g.thread_count; i++) {
    Thread& t = g.threads[i];
    t.index = uint16_t(i);
    t.lane = uint16_t(i % kLanes);
    t.simdgroup = uint16_t(i / kLanes);
    t.done = t.at_barrier = false;
    t.load_cursor = t.load_run = 0;
    t.load_end = 0;
    Position& p = t.position;
    uint32_t local[3] = {i % size[0], i / size[0] % size[1], i / (size[0] * size[1])};
    for (int d = 0; d < 3; d++) {
      p.thread_position_in_threadgroup[d] = local[d];
      p.threadgroup_position_in_grid[d] = position[d];
      p.thread_position_in_grid[d] = position[d] * run.threadgroup[d] + local[d];
      p.threads_per_threadgroup[d] = size[d];
      p.dispatch_threads_per_threadgroup[d] = run.threadgroup[d];
      p.threads_per_grid[d] = run.grid[d];
      p.threadgroups_per_grid[d] = groups[d];
    }
    p.thread_index_in_threadgroup = i;
    p.thread_index_in_simdgroup = t.lane;
    p.simdgroup_index_in_threadgroup = t.simdgroup;
    p.simdgroups_per_threadgroup = g.simdgroup_count;
    p.dispatch_simdgroups_per_threadgroup = (full + kLanes - 1) / kLanes;
    p.threads_per_simdgroup = kLanes;
    p.thread_index_in_quadgroup = i % 4;
    p.quadgroup_index_in_threadgroup = i / 4;
    p.quadgroups_per_threadgroup = (g.thread_count + 3) / 4;
    p.dispatch_quadgroups_per_threadgroup = (full + 3) / 4;
    prepare_fiber(t);
  }
  for (unsigned s = 0; s < g.simdgroup_count; s++) {
    Simdgroup& simdgroup = g.simdgroups[s];
    unsigned first = s * kLanes;
    unsigned lanes = g.thread_count - first < kLanes ? g.thread_count - first : kLanes;
    uint8_t lane_of_rank[kLanes];
    arrange(lane_of_rank, lanes, run.order, random);
    for (unsigned rank = 0; rank < lanes; rank++) {
      unsigned lane = lane_of_rank[rank];
      simdgroup.thread_of_rank[rank] = uint16_t(first + lane);
      simdgroup.rank_of_lane[lane] = uint8_t(rank);
      g.threads[first + lane].rank = uint8_t(rank);
    }
    simdgroup.live = simdgroup.present_lanes = lanes == 32 ? ~0u : (1u << lanes) - 1;
    simdgroup.arrived = simdgroup.at_barrier = 0;
    simdgroup.parity = 0;
    simdgroup.synchronised_threadgroup = simdgroup.synchronised_device = 0;
    simdgroup.load_count = 0;
  }
}

static void run_threadgroup(const Run& run, const uint32_t position[3], const uint32_t groups[3],
                            uint32_t& random) {
  g.first_clock = ++g.clock;
  g.synchronised_threadgroup = g.synchronised_device = g.clock;
  g.current = nullptr;
  begin_threadgroup_memory();
  prepare_threadgroup(run, position, groups, random);
  uint16_t simdgroup_order[kMaxThreads / kLanes];
  for (;;) {
    arrange(simdgroup_order, g.simdgroup_count, run.order, random);
    for (unsigned i = 0; i < g.simdgroup_count; i++) {
      Simdgroup& simdgroup = g.simdgroups[simdgroup_order[i]];
      Thread* first = next_lane(simdgroup, 31);
      if (!first) continue;
      g.current = first;
      emulator_switch(&g.scheduler, first->stack_pointer);
      if (g.run->fault.kind) return;
    }
    Thread *waiting = nullptr, *ended = nullptr;
    for (unsigned i = 0; i < g.thread_count; i++) {
      Thread& t = g.threads[i];
      if (t.done) {
        if (!ended) ended = &t;
        continue;
      }
      if (waiting && t.line != waiting->line) ended = &t;
      if (!waiting) waiting = &t;
    }
    if (!waiting) return;
    g.current = waiting;
    if (ended) {
      Fault fault = fault_here(kDivergentBarrier);
      fault.file = waiting->file;
      fault.line = waiting->line;
      fault.other_thread = ended->index;
      if (!ended->done) {
        fault.other_file = ended->file;
        fault.other_line = ended->line;
      }
      g.run->fault = fault;
      return;
    }
    g.barriers++;
    g.clock++;
    if (waiting->barrier_flags & kMemThreadgroup) g.synchronised_threadgroup = g.clock;
    if (waiting->barrier_flags & kMemDevice) g.synchronised_device = g.clock;
    for (unsigned s = 0; s < g.simdgroup_count; s++) g.simdgroups[s].at_barrier = 0;
  }
}

extern "C" void emulator_threadgroup_barrier(unsigned flags, const char* file, unsigned line) {
  Thread& self = *g.current;
  Simdgroup& simdgroup = g.simdgroups[self.simdgroup];
  self.file = file;
  self.line = line;
  self.barrier_flags = flags;
  simdgroup.at_barrier |= 1u << self.rank;
  if (simdgroup.at_barrier == simdgroup.live) end_loads(simdgroup);
  leave(simdgroup);
}

// Where the kernel's own library is in memory: its tables of constants may be read.
static int find_library(dl_phdr_info* info, size_t, void* data) {
  Run& run = *static_cast<Run*>(data);
  uintptr_t launch = reinterpret_cast<uintptr_t>(run.launch);
  uintptr_t start = ~uintptr_t(0), end = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    if (from < start) start = from;
    if (from + info->dlpi_phdr[i].p_memsz > end) end = from + info->dlpi_phdr[i].p_memsz;
  }
  if (launch < start || launch >= end) return 0;
  run.static_start = start;
  run.static_end = end;
  return 1;
}

extern "C" int emulator_run(Run* run) {
  if (!map_memory()) return -1;
  g.run = run;
  dl_iterate_phdr(find_library, run);
  run->fault = Fault{};
  // The clock goes on from run to run, so that threadgroup memory forgets the last one by itself.
  if (g.clock == 0 || g.clock > 0x80000000u) {
    g.clock = kHostClock;
    memset(g.arena_cells, 0, kThreadgroupArena * sizeof(Cell));
  }
  g.barriers = 0;
  g.variable_count = 0;
  g.arena_used = 0;
  g.variable_bytes = 0;
  g.threadgroup_loaded = g.threadgroup_stored = 0;
  place_buffers();
  uint32_t groups[3];
  for (int d = 0; d < 3; d++)
    groups[d] = (run->grid[d] + run->threadgroup[d] - 1) / run->threadgroup[d];
  uint64_t total = uint64_t(groups[0]) * groups[1] * groups[2];
  uint64_t count = run->sample ? run->sample_count : total;
  uint32_t random = run->seed ? run->seed : 1;
  uint64_t done = 0;
  for (; done < count && !run->fault.kind; done++) {
    uint64_t linear = run->sample ? run->sample[done]
                      : run->order == kReverse ? total - 1 - done
                                               : done;
    uint32_t position[3] = {uint32_t(linear % groups[0]), uint32_t(linear / groups[0] % groups[1]),
                            uint32_t(linear / (uint64_t(groups[0]) * groups[1]))};
    run_threadgroup(*run, position, groups, random);
  }
  g.current = nullptr;
  run->threadgroups_run = done;
  run->barriers = g.barriers;
  run->threadgroup_bytes = g.variable_bytes;
  run->threadgroup_loaded = g.threadgroup_loaded;
  run->threadgroup_stored = g.threadgroup_stored;
  return_buffers();
  return run->fault.kind;
}

extern "C" const char* emulator_variable_name(int index) { return g.variables[index].name; }

extern "C" uint64_t emulator_variable_bytes(int index) { return g.variables[index].bytes; }

}  // namespace emulator
