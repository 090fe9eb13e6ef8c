// Joins the parts of the sequence that attend_plain or attend_affine left.
//
// O: of the output. D: head size. SIMDGROUPS: of a threadgroup, each with every SIMDGROUPS-th part.
// partial float [rows, parts, D], each divided by its sum of weights; statistics [rows, parts, 2]:
// maximum and sum. Threadgroups: [rows]. output [rows, D].
constexpr int EACH = D / 32;
threadgroup float sums[SIMDGROUPS * D];
threadgroup float totals[SIMDGROUPS];

const int lane = int(thread_index_in_simdgroup);
const int simdgroup = int(simdgroup_index_in_threadgroup);
const size_t row = threadgroup_position_in_grid.x;
const int parts = partial_shape[1];

auto of_row = statistics + row * parts * 2;
float best = Limits<float>::finite_min;
for (int i = lane; i < parts; i += 32) {
  best = max(best, float(of_row[i * 2]));
}
best = simd_max(best);

float total = 0.0f;
float sum[EACH];
for (int e = 0; e < EACH; e++) {
  sum[e] = 0.0f;
}
for (int i = simdgroup; i < parts; i += SIMDGROUPS) {
  float weight = of_row[i * 2 + 1] * fast::exp(of_row[i * 2] - best);
  total += weight;
  auto from = partial + (row * parts + i) * D + lane * EACH;
  for (int e = 0; e < EACH; e++) {
    sum[e] += weight * from[e];
  }
}
for (int e = 0; e < EACH; e++) {
  sums[simdgroup * D + lane * EACH + e] = sum[e];
}
if (lane == 0) {
  totals[simdgroup] = total;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
for (int d = int(thread_position_in_threadgroup.x); d < D; d += SIMDGROUPS * 32) {
  float whole = 0.0f;
  float weights = 0.0f;
  for (int s = 0; s < SIMDGROUPS; s++) {
    whole += sums[s * D + d];
    weights += totals[s];
  }
  output[row * D + d] = static_cast<O>(whole / weights);
}
