// Rows of keys or values, from device memory once into threadgroup memory.
//
// A staged row takes LD = D + 16 / sizeof(Stage) elements, so that rows start in different banks.
// The first `closed` rows of a tile are in the cache's buffers, those after them in the open block
// of OPEN rows (0: there is none, and all rows are closed); `closed` is negative if the tile starts
// in the block. Rows from `count` on are staged as zeros and not loaded. All threads of the
// threadgroup take part.

// Where the vectors of a KV head start in an open block [which, BATCHES, HEADS, OPEN], in rows.
// which: 0 of keys and 1 of values; in the block of scales and biases 0 and 1 of scales, 2 and 3 of
// biases.
template <int OPEN>
inline size_t open_head(int which, int batches, int batch, int heads, int head) {
  return ((size_t(which) * batches + batch) * heads + head) * OPEN;
}

template <int D, typename Stage>
constexpr int staged_row_length() {
  return D + 16 / int(sizeof(Stage));
}

// Plain rows of T, four values a thread. rows: the first row of the tile, open_rows: of the block;
// strides in elements.
template <typename T, int D, int KEYS, int THREADS, int OPEN, typename Rows, typename OpenRows>
inline void stage_rows(
    Rows rows,
    int64_t row_stride,
    OpenRows open_rows,
    int closed,
    int count,
    threadgroup T* stage,
    uint thread_index) {
  constexpr int LD = staged_row_length<D, T>();
  constexpr int PIECES = D / 4;
  for (int i = int(thread_index); i < KEYS * PIECES; i += THREADS) {
    int row = i / PIECES;
    int d = i % PIECES * 4;
    vec<T, 4> piece = vec<T, 4>(T(0.0f));
    if (row < count) {
      if (OPEN > 0 && row >= closed) {
        piece = *(const device vec<T, 4>*)(open_rows + (row - closed) * D + d);
      } else {
        piece = *(const device vec<T, 4>*)(rows + row * row_stride + d);
      }
    }
    *(threadgroup vec<T, 4>*)(stage + row * LD + d) = piece;
  }
}

// Affine-quantized rows as float, one word of codes a thread. The first lane of those that share a
// group loads its scale and bias, and the others have them from it.
template <
    int BITS,
    int GROUP,
    int D,
    int KEYS,
    int THREADS,
    int OPEN,
    typename Words,
    typename Affine,
    typename OpenWords,
    typename OpenAffine>
inline void stage_affine_rows(
    Words words,
    int64_t word_stride,
    Affine scales,
    int64_t scale_stride,
    Affine biases,
    int64_t bias_stride,
    OpenWords open_words,
    OpenAffine open_scales,
    OpenAffine open_biases,
    int closed,
    int count,
    threadgroup float* stage,
    uint thread_index,
    uint lane) {
  constexpr int LD = staged_row_length<D, float>();
  constexpr int CODES = 32 / BITS;
  constexpr int ROW_WORDS = D / CODES;
  constexpr int GROUP_WORDS = GROUP / CODES;
  static_assert(32 % GROUP_WORDS == 0, "a group's words are in one simdgroup");
  static_assert(KEYS * ROW_WORDS % 32 == 0, "simdgroups take part as a whole");
  constexpr uint MASK = (1u << BITS) - 1u;
  for (int i = int(thread_index); i < KEYS * ROW_WORDS; i += THREADS) {
    int row = i / ROW_WORDS;
    int word = i % ROW_WORDS;
    bool valid = row < count;
    bool open = OPEN > 0 && row >= closed;
    float scale = 0.0f;
    float bias = 0.0f;
    if (valid && word % GROUP_WORDS == 0) {
      int group = word / GROUP_WORDS;
      if (open) {
        scale = float(open_scales[(row - closed) * (D / GROUP) + group]);
        bias = float(open_biases[(row - closed) * (D / GROUP) + group]);
      } else {
        scale = float(scales[row * scale_stride + group]);
        bias = float(biases[row * bias_stride + group]);
      }
    }
    ushort first = ushort(lane - lane % uint(GROUP_WORDS));
    scale = simd_shuffle(scale, first);
    bias = simd_shuffle(bias, first);
    uint codes = 0u;
    if (valid) {
      codes = open ? open_words[(row - closed) * ROW_WORDS + word] : words[row * word_stride + word];
    }
    threadgroup float* to = stage + row * LD + word * CODES;
    for (int c = 0; c < CODES; c += 4) {
      float4 piece;
      for (int e = 0; e < 4; e++) {
        piece[e] = scale * float((codes >> (BITS * (c + e))) & MASK) + bias;
      }
      *(threadgroup float4*)(to + c) = piece;
    }
  }
}
