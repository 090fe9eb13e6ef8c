// New tokens for an affine-quantized cache: as write_plain.metal, with keys and values quantized.
//
// BITS, GROUP: of the quantization. open_words [K and V, B, KV_HEADS, OPEN, D * BITS / 32] and
// open_affine [scales and biases, K and V, B, KV_HEADS, OPEN, D / GROUP], of which the first
// `opened` rows count. words, affine: the same with L rows more.
constexpr int EACH = D / 32;
constexpr int VECTORS = HEADS + 2 * KV_HEADS;
constexpr int ROW_WORDS = D * BITS / 32;
constexpr int ROW_GROUPS = D / GROUP;
constexpr int WORD_LANES = 32 / BITS / EACH;
constexpr int GROUP_LANES = GROUP / EACH;
const uint lane = thread_index_in_simdgroup;
const int which = int(threadgroup_position_in_grid.x);
const int batch = int(threadgroup_position_in_grid.y);
const int batches = int(threadgroups_per_grid.y);
const int tokens = by_head_shape[1];
const size_t biases = size_t(2 * batches * KV_HEADS) * OPEN * ROW_GROUPS;

if (which >= tokens * VECTORS) {
  int copied = which - tokens * VECTORS;
  int vector = copied % (2 * KV_HEADS);
  size_t row = open_row<KV_HEADS, OPEN>(vector, batches, batch, copied / (2 * KV_HEADS));
  if (int(lane) < ROW_WORDS) {
    size_t at = row * ROW_WORDS + lane;
    words[at] = open_words[at];
  }
  if (int(lane) < ROW_GROUPS) {
    size_t at = row * ROW_GROUPS + lane;
    affine[at] = open_affine[at];
    affine[biases + at] = open_affine[biases + at];
  }
  return;
}
const int token = which / VECTORS;
const int head = which % VECTORS;
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
  return;
}
size_t row = open_row<KV_HEADS, OPEN>(head - HEADS, batches, batch, opened + token);
float2 of_group = affine_of_group<D, BITS, GROUP>(x);
uint word = packed_codes<D, BITS>(x, of_group, lane);
if (int(lane) % WORD_LANES == 0) {
  words[row * ROW_WORDS + lane / WORD_LANES] = word;
}
if (int(lane) % GROUP_LANES == 0) {
  size_t at = row * ROW_GROUPS + lane / GROUP_LANES;
  affine[at] = static_cast<T>(of_group.x);
  affine[biases + at] = static_cast<T>(of_group.y);
}
