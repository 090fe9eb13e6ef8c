// New tokens for a plain cache: queries and keys rotated, each where it is read from.
//
// T: of everything. D: head size. HEADS, KV_HEADS: of queries, and of keys and values. TRADITIONAL:
// pairs of the rotation are neighbours. by_head [B, L, HEADS + 2 KV_HEADS, D], any strides. One
// simdgroup a vector: grid [32 (HEADS + 2 KV_HEADS), L, B].
// queries [B, HEADS, L, D], rows [K and V, B, KV_HEADS, L, D].
constexpr int EACH = D / 32;
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
device T* to;
if (head < HEADS) {
  to = queries + (size_t(batch * HEADS + head) * tokens + token) * D;
} else {
  int kv = (head - HEADS) / KV_HEADS;
  int kv_head = (head - HEADS) % KV_HEADS;
  to = rows + ((size_t(kv * batches + batch) * KV_HEADS + kv_head) * tokens + token) * D;
}
for (int e = 0; e < EACH; e++) {
  to[int(lane) * EACH + e] = static_cast<T>(x[e]);
}
