// New tokens for an affine-quantized cache: as write_plain.metal, with keys and values quantized.
//
// BITS, GROUP: of the quantization. words [K and V, B, KV_HEADS, L, D * BITS / 32], affine [scales
// and biases, K and V, B, KV_HEADS, L, D / GROUP].
constexpr int EACH = D / 32;
constexpr int ROW_WORDS = D * BITS / 32;
constexpr int WORD_LANES = 32 / BITS / EACH;
constexpr int GROUP_LANES = GROUP / EACH;
const uint lane = thread_index_in_simdgroup;
const int head = int(threadgroup_position_in_grid.x);
const int token = int(threadgroup_position_in_grid.y);
const int batch = int(threadgroup_position_in_grid.z);
const int tokens = int(threadgroups_per_grid.y);
const int batches = int(threadgroups_per_grid.z);

auto from = by_head + batch * by_head_strides[0] + token * by_head_strides[1] +
    head * by_head_strides[2];
float x[EACH];
for (int e = 0; e < EACH; e++) {
  x[e] = float(from[(int(lane) * EACH + e) * by_head_strides[3]]);
}
if (head < HEADS + KV_HEADS) {
  rotate<T, D, TRADITIONAL>(x, lane, position_scale * float(offset + token), log2_base);
}
if (head < HEADS) {
  device T* to = queries + (size_t(batch * HEADS + head) * tokens + token) * D;
  for (int e = 0; e < EACH; e++) {
    to[int(lane) * EACH + e] = static_cast<T>(x[e]);
  }
} else {
  int kv = (head - HEADS) / KV_HEADS;
  int kv_head = (head - HEADS) % KV_HEADS;
  size_t row = (size_t(kv * batches + batch) * KV_HEADS + kv_head) * tokens + token;
  size_t rows = size_t(2 * batches * KV_HEADS) * tokens;
  float2 of_group = affine_of_group<D, BITS, GROUP>(x);
  uint word = packed_codes<D, BITS>(x, of_group, lane);
  if (int(lane) % WORD_LANES == 0) {
    words[row * ROW_WORDS + lane / WORD_LANES] = word;
  }
  if (int(lane) % GROUP_LANES == 0) {
    size_t at = row * (D / GROUP) + lane / GROUP_LANES;
    affine[at] = static_cast<T>(of_group.x);
    affine[rows * (D / GROUP) + at] = static_cast<T>(of_group.y);
  }
}
