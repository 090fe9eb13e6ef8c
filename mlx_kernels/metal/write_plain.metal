// New tokens for a plain cache: queries and keys rotated, each where it is read from, and keys and
// values put after those of the open block.
//
// T: of everything. D: head size. HEADS, KV_HEADS: of queries, and of keys and values. TRADITIONAL:
// pairs of the rotation are neighbours. OPEN: rows that an open block has room for.
// by_head [B, L, HEADS + 2 KV_HEADS, D], any strides; open_rows [K and V, B, KV_HEADS, OPEN, D], of
// which the first `opened` count. One simdgroup a vector, new ones and then those to copy: grid
// [32 (L (HEADS + 2 KV_HEADS) + opened * 2 KV_HEADS), B].
// queries [B, HEADS, L, D], rows: the open block with L rows more, nothing after them.
constexpr int EACH = D / 32;
constexpr int VECTORS = HEADS + 2 * KV_HEADS;
const uint lane = thread_index_in_simdgroup;
const int which = int(threadgroup_position_in_grid.x);
const int batch = int(threadgroup_position_in_grid.y);
const int batches = int(threadgroups_per_grid.y);
const int tokens = by_head_shape[1];

if (which >= tokens * VECTORS) {
  int copied = which - tokens * VECTORS;
  int vector = copied % (2 * KV_HEADS);
  size_t row = open_row<KV_HEADS, OPEN>(vector, batches, batch, copied / (2 * KV_HEADS));
  for (int e = 0; e < EACH; e++) {
    size_t at = row * D + lane * EACH + e;
    rows[at] = open_rows[at];
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
device T* to;
if (head < HEADS) {
  to = queries + (size_t(batch * HEADS + head) * tokens + token) * D;
} else {
  to = rows + open_row<KV_HEADS, OPEN>(head - HEADS, batches, batch, opened + token) * D;
}
for (int e = 0; e < EACH; e++) {
  to[int(lane) * EACH + e] = static_cast<T>(x[e]);
}
