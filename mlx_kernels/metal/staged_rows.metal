// Rows of keys or values, from device memory once into threadgroup memory.
//
// A staged row takes LD = D + 16 / sizeof(Stage) elements, so that rows start in different banks.
// Rows from `stop` on are staged as zeros and not loaded. All threads of the threadgroup take part.

template <int D, typename Stage>
constexpr int staged_row_length() {
  return D + 16 / int(sizeof(Stage));
}

// Plain rows of T, four values a thread. rows: the first row of the tile; strides in elements.
template <typename T, int D, int KEYS, int THREADS, typename Rows>
inline void stage_rows(
    Rows rows,
    int64_t row_stride,
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
      piece = *(const device vec<T, 4>*)(rows + row * row_stride + d);
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
    typename Words,
    typename Affine>
inline void stage_affine_rows(
    Words words,
    int64_t word_stride,
    Affine scales,
    int64_t scale_stride,
    Affine biases,
    int64_t bias_stride,
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
    float scale = 0.0f;
    float bias = 0.0f;
    if (valid && word % GROUP_WORDS == 0) {
      scale = float(scales[row * scale_stride + word / GROUP_WORDS]);
      bias = float(biases[row * bias_stride + word / GROUP_WORDS]);
    }
    ushort first = ushort(lane - lane % uint(GROUP_WORDS));
    scale = simd_shuffle(scale, first);
    bias = simd_shuffle(bias, first);
    uint codes = valid ? words[row * word_stride + word] : 0u;
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
