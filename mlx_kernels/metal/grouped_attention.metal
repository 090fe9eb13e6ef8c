// Attention of one GQA group over a part of its keys, in 8 by 8 simdgroup matrices.
//
// The query rows of a group (G heads times R tokens) are stacked in TILES tiles of 8. The
// threadgroup has TILES * SHARES simdgroups: each has one tile of rows and, of every staged tile of
// KEYS keys, one of SHARES equal shares. Softmax runs along (Milakov and Gimelshein 2018), in
// float; the split over the sequence is that of Flash-Decoding (Dao et al. 2023).

// Where a lane's two elements are in a simdgroup matrix: row, column and column + 1
// (mlx/backend/metal/kernels/steel/gemm/mma.h, BaseMMAFrag::get_coord).
inline ushort2 matrix_place(uint lane) {
  ushort quad = ushort(lane / 4);
  ushort row = (quad & 4) + ushort(lane / 2) % 4;
  ushort column = (quad & 2) * 2 + ushort(lane % 2) * 2;
  return ushort2(row, column);
}

// Sum or maximum over the columns of a row, from each lane's own: lanes 1 and 8 apart share a row.
inline float row_sum(float x) {
  x += simd_shuffle_xor(x, ushort(1));
  return x + simd_shuffle_xor(x, ushort(8));
}
inline float row_max(float x) {
  x = max(x, simd_shuffle_xor(x, ushort(1)));
  return max(x, simd_shuffle_xor(x, ushort(8)));
}

// What a simdgroup keeps of its rows: queries, outputs not yet divided by `total`, and the running
// maximum and sum of the lane's row.
template <int D>
struct AttentionRows {
  simdgroup_matrix<float, 8, 8> queries[D / 8];
  simdgroup_matrix<float, 8, 8> outputs[D / 8];
  float best;
  float total;
};

// A lane's query row, scaled: queries points at its first element; none (zeros) for a row past the
// last one.
template <int D, typename Queries>
inline void start_rows(
    thread AttentionRows<D>& rows,
    Queries queries,
    int64_t stride,
    bool exists,
    float scale,
    ushort2 place) {
  for (int i = 0; i < D / 8; i++) {
    for (int e = 0; e < 2; e++) {
      int d = i * 8 + place.y + e;
      rows.queries[i].thread_elements()[e] =
          exists ? scale * float(queries[d * stride]) : 0.0f;
      rows.outputs[i].thread_elements()[e] = 0.0f;
    }
  }
  rows.best = Limits<float>::finite_min;
  rows.total = 0.0f;
}

// Takes a share of a staged tile into the rows. visible: how many keys of this share, from its
// first on, the lane's row sees; may be negative.
template <typename Stage, int D, int SHARE>
inline void attend_share(
    thread AttentionRows<D>& rows,
    const threadgroup Stage* keys,
    const threadgroup Stage* values,
    int visible,
    ushort2 place) {
  constexpr int LD = staged_row_length<D, Stage>();
  simdgroup_matrix<float, 8, 8> scores[SHARE / 8];
  float best = rows.best;
  for (int j = 0; j < SHARE / 8; j++) {
    scores[j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    const threadgroup Stage* from = keys + (j * 8 + place.y) * LD + place.x;
    for (int i = 0; i < D / 8; i++) {
      simdgroup_matrix<float, 8, 8> transposed;
      transposed.thread_elements()[0] = float(from[i * 8]);
      transposed.thread_elements()[1] = float(from[LD + i * 8]);
      simdgroup_multiply_accumulate(scores[j], rows.queries[i], transposed, scores[j]);
    }
    for (int e = 0; e < 2; e++) {
      if (j * 8 + place.y + e < visible) {
        best = max(best, scores[j].thread_elements()[e]);
      }
    }
  }
  best = row_max(best);
  float kept = fast::exp(rows.best - best);
  float total = 0.0f;
  for (int j = 0; j < SHARE / 8; j++) {
    for (int e = 0; e < 2; e++) {
      bool seen = j * 8 + place.y + e < visible;
      float weight = seen ? fast::exp(scores[j].thread_elements()[e] - best) : 0.0f;
      scores[j].thread_elements()[e] = weight;
      total += weight;
    }
  }
  rows.best = best;
  rows.total = rows.total * kept + row_sum(total);
  for (int i = 0; i < D / 8; i++) {
    rows.outputs[i].thread_elements() *= kept;
    for (int j = 0; j < SHARE / 8; j++) {
      const threadgroup Stage* from = values + (j * 8 + place.x) * LD + i * 8 + place.y;
      simdgroup_matrix<float, 8, 8> value;
      value.thread_elements()[0] = float(from[0]);
      value.thread_elements()[1] = float(from[1]);
      simdgroup_multiply_accumulate(rows.outputs[i], scores[j], value, rows.outputs[i]);
    }
  }
}

// Adds up the shares of a tile of rows: the simdgroup of share 0 has the sum afterwards. All
// simdgroups call it; memory has (SHARES - 1) * TILES * 8 * (D + 2) floats, free to be overwritten.
template <int D, int TILES, int SHARES>
inline void join_shares(
    thread AttentionRows<D>& rows,
    threadgroup float* memory,
    int tile,
    int share,
    ushort2 place) {
  constexpr int ROW = D + 2;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (share > 0) {
    threadgroup float* to = memory + (((share - 1) * TILES + tile) * 8 + place.x) * ROW;
    for (int i = 0; i < D / 8; i++) {
      for (int e = 0; e < 2; e++) {
        to[i * 8 + place.y + e] = rows.outputs[i].thread_elements()[e];
      }
    }
    if (place.y == 0) {
      to[D] = rows.best;
      to[D + 1] = rows.total;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (share > 0) {
    return;
  }
  for (int other = 0; other < SHARES - 1; other++) {
    const threadgroup float* from = memory + ((other * TILES + tile) * 8 + place.x) * ROW;
    float best = max(rows.best, from[D]);
    float kept = fast::exp(rows.best - best);
    float taken = fast::exp(from[D] - best);
    rows.best = best;
    rows.total = rows.total * kept + from[D + 1] * taken;
    for (int i = 0; i < D / 8; i++) {
      for (int e = 0; e < 2; e++) {
        float sum = rows.outputs[i].thread_elements()[e] * kept;
        rows.outputs[i].thread_elements()[e] = sum + from[i * 8 + place.y + e] * taken;
      }
    }
  }
}

// Writes a lane's part of its row: the output, divided by the sum of the weights, and (maximum,
// sum) for the launch that joins the parts of the sequence.
template <typename O, int D>
inline void finish_rows(
    thread AttentionRows<D>& rows,
    device O* output,
    device float* statistics,
    ushort2 place) {
  float inverse = rows.total > 0.0f ? 1.0f / rows.total : 0.0f;
  for (int i = 0; i < D / 8; i++) {
    for (int e = 0; e < 2; e++) {
      output[i * 8 + place.y + e] = static_cast<O>(rows.outputs[i].thread_elements()[e] * inverse);
    }
  }
  if (place.y == 0) {
    statistics[0] = rows.best;
    statistics[1] = rows.total;
  }
}
