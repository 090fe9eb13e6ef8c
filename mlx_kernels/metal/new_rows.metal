// A new vector of a head, spread over a simdgroup: rotated, quantized, packed.
//
// Lane i holds elements i * D / 32 to (i + 1) * D / 32 - 1.

// Where a row of an open block [K and V, batches, KV_HEADS, OPEN] is. vector: KV heads of keys, and
// then of values.
template <int KV_HEADS, int OPEN>
inline size_t open_row(int vector, int batches, int batch, int row) {
  int kv = vector / KV_HEADS;
  return size_t((kv * batches + batch) * KV_HEADS + vector % KV_HEADS) * OPEN + row;
}

// Rotates a vector as mx.fast.rope does (rope_single_impl of MLX's rope.metal): pairs are
// neighbours if TRADITIONAL, else half a head apart; the result is rounded to T.
template <typename T, int D, bool TRADITIONAL>
inline void rotate(thread float* x, uint lane, float position, float log2_base) {
  constexpr int EACH = D / 32;
  float other[EACH];
  for (int e = 0; e < EACH; e++) {
    other[e] = TRADITIONAL ? x[e ^ 1] : simd_shuffle_xor(x[e], ushort(16));
  }
  for (int e = 0; e < EACH; e++) {
    int d = int(lane) * EACH + e;
    int pair = TRADITIONAL ? d / 2 : d % (D / 2);
    bool second = TRADITIONAL ? d % 2 == 1 : d >= D / 2;
    float inverse_frequency = metal::exp2(-(float(pair) / float(D / 2)) * log2_base);
    float theta = position * inverse_frequency;
    float cosine = fast::cos(theta);
    float sine = fast::sin(theta);
    float rotated = second ? other[e] * sine + x[e] * cosine : x[e] * cosine - other[e] * sine;
    x[e] = float(static_cast<T>(rotated));
  }
}

// Scale and bias of the lane's group, as MLX's affine_quantize (quantized.h) finds them.
template <int D, int BITS, int GROUP>
inline float2 affine_of_group(const thread float* x) {
  constexpr int EACH = D / 32;
  constexpr float BINS = float((1 << BITS) - 1);
  float low = x[0];
  float high = max(0.0f, x[0]);
  for (int e = 1; e < EACH; e++) {
    low = min(low, x[e]);
    high = max(high, x[e]);
  }
  for (int distance = 1; distance < GROUP / EACH; distance *= 2) {
    low = min(low, simd_shuffle_xor(low, ushort(distance)));
    high = max(high, simd_shuffle_xor(high, ushort(distance)));
  }
  float scale = max((high - low) / BINS, 1e-7f);
  bool from_low = abs(low) > abs(high);
  scale = from_low ? scale : -scale;
  float edge = from_low ? low : high;
  float steps = round(edge / scale);
  bool at_zero = steps == 0.0f;
  return float2(at_zero ? scale : edge / steps, at_zero ? 0.0f : edge);
}

// The lane's word of codes: whole in the first of the lanes that share it.
template <int D, int BITS>
inline uint packed_codes(const thread float* x, float2 affine, uint lane) {
  constexpr int EACH = D / 32;
  constexpr int CODES = 32 / BITS;
  constexpr float BINS = float((1 << BITS) - 1);
  uint word = 0;
  for (int e = 0; e < EACH; e++) {
    float code = min(round((x[e] - affine.y) / affine.x), BINS);
    word |= (uint(code) & ((1u << BITS) - 1u)) << (BITS * ((int(lane) * EACH + e) % CODES));
  }
  for (int distance = 1; distance < CODES / EACH; distance *= 2) {
    word |= simd_shuffle_xor(word, ushort(distance));
  }
  return word;
}
