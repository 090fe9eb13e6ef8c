// Attention over plain keys and values.
//
// T: of queries, keys and values. O: of the output. D: head size. G: query heads a KV head. R: query
// tokens. KEYS: of a staged tile. SHARES: simdgroups that share a tile's keys. OPEN: rows that the
// open block has room for, 0 if there is none.
// queries [B, H, R, D], keys and values [B, H_kv, closed, D] with any strides but 1 along D of keys
// and values; open_rows [K and V, B, H_kv, OPEN, D], of which `opened` rows come after the closed
// ones; part: keys that a threadgroup takes, a multiple of KEYS. Threadgroups: [parts, B * H_kv].
// output [B, H, R, parts, D], statistics [B, H, R, parts, 2].
constexpr int TILES = (G * R + 7) / 8;
constexpr int THREADS = TILES * SHARES * 32;
constexpr int STAGED = KEYS * staged_row_length<D, T>();
constexpr int STAGE_BYTES = 2 * STAGED * int(sizeof(T));
constexpr int JOIN_BYTES = (SHARES - 1) * TILES * 8 * (D + 2) * 4;
threadgroup float4 memory[((STAGE_BYTES > JOIN_BYTES ? STAGE_BYTES : JOIN_BYTES) + 15) / 16];
threadgroup T* staged_keys = (threadgroup T*)memory;
threadgroup T* staged_values = staged_keys + STAGED;

const uint lane = thread_index_in_simdgroup;
const uint thread_index = thread_position_in_threadgroup.x;
const int tile = int(simdgroup_index_in_threadgroup) % TILES;
const int share = int(simdgroup_index_in_threadgroup) / TILES;
const ushort2 place = matrix_place(lane);

const int kv_heads = keys_shape[1];
const int closed = keys_shape[2];
const int n = closed + opened;
const int parts = int(threadgroups_per_grid.x);
const int which = int(threadgroup_position_in_grid.x);
const int batches = int(threadgroups_per_grid.y) / kv_heads;
const int batch = int(threadgroup_position_in_grid.y) / kv_heads;
const int kv_head = int(threadgroup_position_in_grid.y) % kv_heads;
const int start = which * part;
const int stop = min(n, start + part);

const int row = tile * 8 + place.x;
const bool exists = row < G * R;
const int token = exists ? row / G : 0;
const int head = kv_head * G + (exists ? row % G : 0);

AttentionRows<D> rows;
start_rows<D>(
    rows,
    queries + batch * queries_strides[0] + head * queries_strides[1] + token * queries_strides[2],
    queries_strides[3],
    exists,
    scale,
    place);

auto key_rows = keys + batch * keys_strides[0] + kv_head * keys_strides[1];
auto value_rows = values + batch * values_strides[0] + kv_head * values_strides[1];
auto open_keys = open_rows + open_head<OPEN>(0, batches, batch, kv_heads, kv_head) * D;
auto open_values = open_rows + open_head<OPEN>(1, batches, batch, kv_heads, kv_head) * D;
// Tokens are causal among themselves: the last one sees all n keys.
const int seen = min(stop, n - R + token + 1);
constexpr int SHARE = KEYS / SHARES;
for (int first = start; first < stop; first += KEYS) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  stage_rows<T, D, KEYS, THREADS, OPEN>(
      key_rows + first * keys_strides[2],
      keys_strides[2],
      open_keys,
      closed - first,
      stop - first,
      staged_keys,
      thread_index);
  stage_rows<T, D, KEYS, THREADS, OPEN>(
      value_rows + first * values_strides[2],
      values_strides[2],
      open_values,
      closed - first,
      stop - first,
      staged_values,
      thread_index);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  constexpr int LD = staged_row_length<D, T>();
  attend_share<T, D, SHARE>(
      rows,
      staged_keys + share * SHARE * LD,
      staged_values + share * SHARE * LD,
      seen - first - share * SHARE,
      place);
}
join_shares<D, TILES, SHARES>(rows, (threadgroup float*)memory, tile, share, place);
if (share == 0 && exists) {
  size_t at = (size_t(batch * kv_heads * G + head) * R + token) * parts + which;
  finish_rows<O, D>(rows, output + at * D, statistics + at * 2, place);
}
