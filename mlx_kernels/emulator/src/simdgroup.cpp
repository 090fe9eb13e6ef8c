// SIMD functions: the lanes of a simdgroup exchange values where they meet.
#include <cmath>
#include <cstring>

#include "emulator.h"

namespace emulator {

// Operations, as include/emulated/simdgroup.h numbers them.
enum Op : int {
  kSum = 0,
  kProduct = 1,
  kMax = 2,
  kMin = 3,
  kAnd = 4,
  kOr = 5,
  kXor = 6,
  kExchange = 100,
  kBarrier = 101,
  kMultiplyAccumulate = 102,
  kPrefix = 200,
};

static unsigned char* own_slot() {
  Thread& self = *g.current;
  Simdgroup& simdgroup = g.simdgroups[self.simdgroup];
  return simdgroup.slot[simdgroup.parity][self.lane];
}

template <typename T>
static T combine_two(int op, T a, T b) {
  switch (op) {
    case kSum: return a + b;
    case kProduct: return a * b;
    // As Metal's fmax and fmin: the number wins over NaN.
    case kMax: return !(b == b) || a > b ? a : b;
    case kMin: return !(b == b) || a < b ? a : b;
    default: return a;
  }
}

template <typename T>
static T combine_bits(int op, T a, T b) {
  switch (op) {
    case kAnd: return a & b;
    case kOr: return a | b;
    case kXor: return a ^ b;
    default: return combine_two(op, a, b);
  }
}

template <typename T>
static T combine_any(int op, T a, T b) {
  if constexpr (T(0.5) == T(0)) {
    return combine_bits(op, a, b);
  } else {
    return combine_two(op, a, b);
  }
}

// Pairwise, as a butterfly of shuffles adds: rounding then is that of the machine's tree, not that
// of one long chain.
template <typename T>
static void reduce(Simdgroup& simdgroup, unsigned parity) {
  T values[kLanes];
  unsigned count = 0;
  for (unsigned lane = 0; lane < kLanes; lane++)
    if (simdgroup.active_lanes[parity] >> lane & 1)
      memcpy(&values[count++], simdgroup.slot[parity][lane], sizeof(T));
  for (; count > 1; count = (count + 1) / 2)
    for (unsigned i = 0; i < count / 2 + count % 2; i++)
      values[i] = 2 * i + 1 < count ? combine_any(simdgroup.op, values[2 * i], values[2 * i + 1])
                                    : values[2 * i];
  memcpy(simdgroup.result[parity][0], &values[0], sizeof(T));
}

template <typename T>
static T simd_reduce(T value, int op, const char* file, unsigned line) {
  memcpy(own_slot(), &value, sizeof(T));
  Simdgroup& simdgroup = g.simdgroups[g.current->simdgroup];
  unsigned parity = meet_simdgroup(op, reduce<T>, file, line);
  memcpy(&value, simdgroup.result[parity][0], sizeof(T));
  return value;
}

template <typename T, bool kInclusive>
static void prefix(Simdgroup& simdgroup, unsigned parity) {
  int op = simdgroup.op - kPrefix - (kInclusive ? 10 : 0);
  T sum = op == kProduct ? T(1) : T(0);
  for (unsigned lane = 0; lane < kLanes; lane++) {
    if (!(simdgroup.active_lanes[parity] >> lane & 1)) continue;
    T value;
    memcpy(&value, simdgroup.slot[parity][lane], sizeof(T));
    T before = sum;
    sum = combine_two(op, sum, value);
    T out = kInclusive ? sum : before;
    memcpy(simdgroup.result[parity][lane], &out, sizeof(T));
  }
}

template <typename T>
static T simd_prefix(T value, int op, int inclusive, const char* file, unsigned line) {
  memcpy(own_slot(), &value, sizeof(T));
  Thread& self = *g.current;
  Simdgroup& simdgroup = g.simdgroups[self.simdgroup];
  unsigned parity =
      inclusive ? meet_simdgroup(kPrefix + 10 + op, prefix<T, true>, file, line)
                : meet_simdgroup(kPrefix + op, prefix<T, false>, file, line);
  memcpy(&value, simdgroup.result[parity][self.lane], sizeof(T));
  return value;
}

extern "C" {

float emulator_simd_reduce_float(float v, int op, const char* f, unsigned l) {
  return simd_reduce(v, op, f, l);
}
int32_t emulator_simd_reduce_int(int32_t v, int op, const char* f, unsigned l) {
  return simd_reduce(v, op, f, l);
}
uint32_t emulator_simd_reduce_uint(uint32_t v, int op, const char* f, unsigned l) {
  return simd_reduce(v, op, f, l);
}
float emulator_simd_prefix_float(float v, int op, int inclusive, const char* f, unsigned l) {
  return simd_prefix(v, op, inclusive, f, l);
}
int32_t emulator_simd_prefix_int(int32_t v, int op, int inclusive, const char* f, unsigned l) {
  return simd_prefix(v, op, inclusive, f, l);
}
uint32_t emulator_simd_prefix_uint(uint32_t v, int op, int inclusive, const char* f, unsigned l) {
  return simd_prefix(v, op, inclusive, f, l);
}

// All lanes give `size` bytes at `value`; each gets those of `source` instead. A source outside the
// simdgroup leaves the value as it is (Metal's shuffles do not wrap); one that is inactive has no
// value to give, which Metal leaves undefined.
void emulator_simd_exchange(void* value, unsigned size, int source, const char* file,
                            unsigned line) {
  Thread& self = *g.current;
  Simdgroup& simdgroup = g.simdgroups[self.simdgroup];
  memcpy(own_slot(), value, size);
  unsigned parity = meet_simdgroup(kExchange, nullptr, file, line);
  if (source < 0 || source >= int(kLanes)) return;
  if (!(simdgroup.active_lanes[parity] >> source & 1)) {
    Fault fault = fault_here(kInactiveLane);
    fault.file = file;
    fault.line = line;
    fault.other_thread = self.simdgroup * kLanes + unsigned(source);
    fail(fault);
  }
  memcpy(value, simdgroup.slot[parity][source], size);
}

// A bit a lane: those that are active and gave a predicate that holds.
uint32_t emulator_simd_ballot(int predicate, const char* file, unsigned line) {
  Thread& self = *g.current;
  Simdgroup& simdgroup = g.simdgroups[self.simdgroup];
  *own_slot() = predicate != 0;
  unsigned parity = meet_simdgroup(kExchange, nullptr, file, line);
  uint32_t ballot = 0;
  for (unsigned lane = 0; lane < kLanes; lane++)
    if (simdgroup.active_lanes[parity] >> lane & 1)
      ballot |= uint32_t(simdgroup.slot[parity][lane][0]) << lane;
  return ballot;
}

unsigned emulator_lane() { return g.current->lane; }

void emulator_simdgroup_barrier(unsigned flags, const char* file, unsigned line) {
  Thread& self = *g.current;
  Simdgroup& simdgroup = g.simdgroups[self.simdgroup];
  Combine tick = [](Simdgroup&, unsigned) { g.clock++; };
  meet_simdgroup(kBarrier, tick, file, line);
  // Every lane of the meeting sees the same clock: no lane can meet again before all have left.
  if (flags & kMemThreadgroup) simdgroup.synchronised_threadgroup = g.clock;
  if (flags & kMemDevice) simdgroup.synchronised_device = g.clock;
}

}  // extern "C"

// Lane L holds elements (row, column) and (row, column + 1) of an 8 by 8 matrix with
// row = ((L / 4) & 4) + (L / 2) % 4 and column = ((L / 4) & 2) * 2 + (L % 2) * 2: the layout that
// MLX's steel kernels rely on (steel/attn/mma.h, get_coord).
static void multiply_accumulate(Simdgroup& simdgroup, unsigned parity) {
  float a[8][8], b[8][8], d[8][8];
  for (unsigned lane = 0; lane < kLanes; lane++) {
    unsigned row = ((lane / 4) & 4) + (lane / 2) % 4;
    unsigned column = ((lane / 4) & 2) * 2 + (lane % 2) * 2;
    const float* slot = reinterpret_cast<const float*>(simdgroup.slot[parity][lane]);
    memcpy(&a[row][column], slot, 8);
    memcpy(&b[row][column], slot + 2, 8);
    memcpy(&d[row][column], slot + 4, 8);
  }
  for (unsigned i = 0; i < 8; i++)
    for (unsigned k = 0; k < 8; k++)
      for (unsigned j = 0; j < 8; j++) d[i][j] += a[i][k] * b[k][j];
  for (unsigned lane = 0; lane < kLanes; lane++) {
    unsigned row = ((lane / 4) & 4) + (lane / 2) % 4;
    unsigned column = ((lane / 4) & 2) * 2 + (lane % 2) * 2;
    memcpy(simdgroup.result[parity][lane], &d[row][column], 8);
  }
}

// `values` are this lane's two elements of A, of B and of C; the first two become those of A B + C,
// summed in float.
extern "C" void emulator_simdgroup_multiply_accumulate(float* values, const char* file,
                                                       unsigned line) {
  Thread& self = *g.current;
  Simdgroup& simdgroup = g.simdgroups[self.simdgroup];
  if (simdgroup.live != ~0u) {
    Fault fault = fault_here(kDivergentSimdgroup);
    strcpy(fault.what, "a simdgroup_matrix needs all 32 lanes");
    fault.file = file;
    fault.line = line;
    fail(fault);
  }
  memcpy(own_slot(), values, 24);
  unsigned parity = meet_simdgroup(kMultiplyAccumulate, multiply_accumulate, file, line);
  memcpy(values, simdgroup.result[parity][self.lane], 8);
}

}  // namespace emulator
