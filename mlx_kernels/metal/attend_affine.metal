// Attention over affine-quantized keys and values: as attend_plain.metal, and
//
// BITS, GROUP: of the quantization. keys and values: words [B, H_kv, closed, D * BITS / 32]; scales
// and biases [B, H_kv, closed, D / GROUP]; strides of 1 along their last axis. open_words [K and V,
// B, H_kv, OPEN, D * BITS / 32], open_affine [scales and biases, K and V, B, H_kv, OPEN, D / GROUP].
constexpr int TILES = (G * R + 7) / 8;
constexpr int THREADS = TILES * SHARES * 32;
constexpr int ROW_WORDS = D * BITS / 32;
constexpr int ROW_GROUPS = D / GROUP;
constexpr int STAGED = KEYS * staged_row_length<D, float>();
constexpr int STAGE_FLOATS = 2 * STAGED;
constexpr int JOIN_FLOATS = (SHARES - 1) * TILES * 8 * (D + 2);
threadgroup float4 memory[((STAGE_FLOATS > JOIN_FLOATS ? STAGE_FLOATS : JOIN_FLOATS) + 3) / 4];
threadgroup float* staged_keys = (threadgroup float*)memory;
threadgroup float* staged_values = staged_keys + STAGED;

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

auto key_words = keys + batch * keys_strides[0] + kv_head * keys_strides[1];
auto key_scale = key_scales + batch * key_scales_strides[0] + kv_head * key_scales_strides[1];
auto key_bias = key_biases + batch * key_biases_strides[0] + kv_head * key_biases_strides[1];
auto value_words = values + batch * values_strides[0] + kv_head * values_strides[1];
auto value_scale =
    value_scales + batch * value_scales_strides[0] + kv_head * value_scales_strides[1];
auto value_bias =
    value_biases + batch * value_biases_strides[0] + kv_head * value_biases_strides[1];
const size_t open_key = open_head<OPEN>(0, batches, batch, kv_heads, kv_head);
const size_t open_value = open_head<OPEN>(1, batches, batch, kv_heads, kv_head);
const size_t open_biases = open_head<OPEN>(2, batches, 0, kv_heads, 0);
// Tokens are causal among themselves: the last one sees all n keys.
const int seen = min(stop, n - R + token + 1);
constexpr int SHARE = KEYS / SHARES;
for (int first = start; first < stop; first += KEYS) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  stage_affine_rows<BITS, GROUP, D, KEYS, THREADS, OPEN>(
      key_words + first * keys_strides[2],
      keys_strides[2],
      key_scale + first * key_scales_strides[2],
      key_scales_strides[2],
      key_bias + first * key_biases_strides[2],
      key_biases_strides[2],
      open_words + open_key * ROW_WORDS,
      open_affine + open_key * ROW_GROUPS,
      open_affine + (open_biases + open_key) * ROW_GROUPS,
      closed - first,
      stop - first,
      staged_keys,
      thread_index,
      lane);
  stage_affine_rows<BITS, GROUP, D, KEYS, THREADS, OPEN>(
      value_words + first * values_strides[2],
      values_strides[2],
      value_scale + first * value_scales_strides[2],
      value_scales_strides[2],
      value_bias + first * value_biases_strides[2],
      value_biases_strides[2],
      open_words + open_value * ROW_WORDS,
      open_affine + open_value * ROW_GROUPS,
      open_affine + (open_biases + open_value) * ROW_GROUPS,
      closed - first,
      stop - first,
      staged_values,
      thread_index,
      lane);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  constexpr int LD = staged_row_length<D, float>();
  attend_share<float, D, SHARE>(
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
