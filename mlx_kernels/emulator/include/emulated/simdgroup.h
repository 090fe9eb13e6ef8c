// Barriers and SIMD functions: the lanes of a simdgroup meet in the runtime (src/simdgroup.cpp).
#pragma once

namespace metal {

enum class mem_flags : uint {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8,
  mem_object_data = 16,
};
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }
constexpr mem_flags operator&(mem_flags a, mem_flags b) { return mem_flags(uint(a) & uint(b)); }

inline void threadgroup_barrier(mem_flags flags, EMULATED_PLACE) {
  emulator_threadgroup_barrier(uint(flags), EMULATED_HERE);
}
inline void simdgroup_barrier(mem_flags flags, EMULATED_PLACE) {
  emulator_simdgroup_barrier(uint(flags), EMULATED_HERE);
}

// Operations as src/simdgroup.cpp numbers them.
enum emulated_operation {
  emulated_sum = 0,
  emulated_product = 1,
  emulated_max = 2,
  emulated_min = 3,
  emulated_and = 4,
  emulated_or = 5,
  emulated_xor = 6,
};

template <typename T, int operation>
inline T emulated_reduce(T x, EMULATED_PLACE) {
  if constexpr (is_floating_point_v<T>) {
    static_assert(operation < emulated_and, "simd_and, simd_or and simd_xor take integers");
    return T(emulator_simd_reduce_float(float(x), operation, EMULATED_HERE));
  } else if constexpr (emulated_vector<T>::size > 0) {
    T r;
    for (int i = 0; i < emulated_vector<T>::size; i++)
      r[i] = emulated_reduce<typename emulated_vector<T>::element, operation>(x[i], EMULATED_HERE);
    return r;
  } else {
    static_assert(is_integral_v<T> && sizeof(T) <= 4 && !is_same_v<T, bool>,
                  "SIMD reductions take float, half, bfloat, or integers of up to 32 bits");
    if constexpr (is_unsigned_v<T>) {
      return T(emulator_simd_reduce_uint(uint(x), operation, EMULATED_HERE));
    } else {
      return T(emulator_simd_reduce_int(int(x), operation, EMULATED_HERE));
    }
  }
}
template <typename T, int operation, int inclusive>
inline T emulated_prefix(T x, EMULATED_PLACE) {
  static_assert((is_floating_point_v<T> || is_integral_v<T>) && sizeof(T) <= 4,
                "SIMD prefix functions take float, half, bfloat, or integers of up to 32 bits");
  if constexpr (is_floating_point_v<T>) {
    return T(emulator_simd_prefix_float(float(x), operation, inclusive, EMULATED_HERE));
  } else if constexpr (is_unsigned_v<T>) {
    return T(emulator_simd_prefix_uint(uint(x), operation, inclusive, EMULATED_HERE));
  } else {
    return T(emulator_simd_prefix_int(int(x), operation, inclusive, EMULATED_HERE));
  }
}

#define EMULATED_REDUCTION(name, operation)                \
  template <typename T>                                    \
  inline T name(T x, EMULATED_PLACE) {                     \
    return emulated_reduce<T, operation>(x, EMULATED_HERE); \
  }
EMULATED_REDUCTION(simd_sum, emulated_sum)
EMULATED_REDUCTION(simd_product, emulated_product)
EMULATED_REDUCTION(simd_max, emulated_max)
EMULATED_REDUCTION(simd_min, emulated_min)
EMULATED_REDUCTION(simd_and, emulated_and)
EMULATED_REDUCTION(simd_or, emulated_or)
EMULATED_REDUCTION(simd_xor, emulated_xor)
#undef EMULATED_REDUCTION

#define EMULATED_PREFIX(name, operation, inclusive)                   \
  template <typename T>                                               \
  inline T name(T x, EMULATED_PLACE) {                                \
    return emulated_prefix<T, operation, inclusive>(x, EMULATED_HERE); \
  }
EMULATED_PREFIX(simd_prefix_inclusive_sum, emulated_sum, 1)
EMULATED_PREFIX(simd_prefix_exclusive_sum, emulated_sum, 0)
EMULATED_PREFIX(simd_prefix_inclusive_product, emulated_product, 1)
EMULATED_PREFIX(simd_prefix_exclusive_product, emulated_product, 0)
#undef EMULATED_PREFIX

// Every lane gives x; each gets that of the lane it names. A lane outside the simdgroup leaves x.
template <typename T>
inline T emulated_from_lane(T x, int lane, EMULATED_PLACE) {
  static_assert(sizeof(T) <= 32, "SIMD shuffles take scalars and vectors");
  emulator_simd_exchange(&x, sizeof(T), lane, EMULATED_HERE);
  return x;
}

template <typename T>
inline T simd_shuffle(T x, ushort lane, EMULATED_PLACE) {
  return emulated_from_lane(x, lane, EMULATED_HERE);
}
template <typename T>
inline T simd_broadcast(T x, ushort lane, EMULATED_PLACE) {
  return emulated_from_lane(x, lane, EMULATED_HERE);
}
template <typename T>
inline T simd_broadcast_first(T x, EMULATED_PLACE) {
  uint active = emulator_simd_ballot(1, EMULATED_HERE);
  return emulated_from_lane(x, __builtin_ctz(active), EMULATED_HERE);
}
template <typename T>
inline T simd_shuffle_xor(T x, ushort mask, EMULATED_PLACE) {
  return emulated_from_lane(x, int(emulator_lane() ^ mask), EMULATED_HERE);
}
template <typename T>
inline T simd_shuffle_down(T x, ushort delta, EMULATED_PLACE) {
  return emulated_from_lane(x, int(emulator_lane()) + delta, EMULATED_HERE);
}
template <typename T>
inline T simd_shuffle_up(T x, ushort delta, EMULATED_PLACE) {
  return emulated_from_lane(x, int(emulator_lane()) - delta, EMULATED_HERE);
}
template <typename T>
inline T simd_shuffle_rotate_down(T x, ushort delta, EMULATED_PLACE) {
  return emulated_from_lane(x, int((emulator_lane() + delta) % 32), EMULATED_HERE);
}
template <typename T>
inline T simd_shuffle_rotate_up(T x, ushort delta, EMULATED_PLACE) {
  return emulated_from_lane(x, int((emulator_lane() + 32 - delta % 32) % 32), EMULATED_HERE);
}
// Lanes whose source is outside their block of `modulo` lanes take what the filling lanes hold.
template <typename T>
inline T simd_shuffle_and_fill_down(T x, T filling, ushort delta, ushort modulo = 32,
                                    EMULATED_PLACE) {
  int lane = int(emulator_lane()), block = lane / modulo * modulo, from = lane + delta;
  T moved = emulated_from_lane(x, block + (from - block) % modulo, EMULATED_HERE);
  T filled = emulated_from_lane(filling, block + (from - block) % modulo, EMULATED_HERE);
  return from < block + modulo ? moved : filled;
}
template <typename T>
inline T simd_shuffle_and_fill_up(T x, T filling, ushort delta, ushort modulo = 32,
                                  EMULATED_PLACE) {
  int lane = int(emulator_lane()), block = lane / modulo * modulo, from = lane - delta;
  int wrapped = block + ((from - block) % modulo + modulo) % modulo;
  T moved = emulated_from_lane(x, wrapped, EMULATED_HERE);
  T filled = emulated_from_lane(filling, wrapped, EMULATED_HERE);
  return from >= block ? moved : filled;
}

struct simd_vote {
  using vote_t = ulong;
  ulong votes;
  explicit constexpr simd_vote(ulong v = 0) : votes(v) {}
  explicit constexpr operator ulong() const { return votes; }
  constexpr bool all() const { return uint(votes) == ~0u; }
  constexpr bool any() const { return votes != 0; }
};
inline simd_vote simd_ballot(bool b, EMULATED_PLACE) {
  return simd_vote(emulator_simd_ballot(b, EMULATED_HERE));
}
inline simd_vote simd_active_threads_mask(EMULATED_PLACE) {
  return simd_vote(emulator_simd_ballot(1, EMULATED_HERE));
}
inline bool simd_any(bool b, EMULATED_PLACE) {
  return emulator_simd_ballot(b, EMULATED_HERE) != 0;
}
inline bool simd_all(bool b, EMULATED_PLACE) {
  return emulator_simd_ballot(!b, EMULATED_HERE) == 0;
}
inline bool simd_is_first(EMULATED_PLACE) {
  return uint(__builtin_ctz(emulator_simd_ballot(1, EMULATED_HERE))) == emulator_lane();
}

// Quadgroups: four lanes that follow each other. They meet with their whole simdgroup here.
template <typename T>
inline T quad_shuffle(T x, ushort lane, EMULATED_PLACE) {
  return emulated_from_lane(x, int(emulator_lane() / 4 * 4 + lane % 4), EMULATED_HERE);
}
template <typename T>
inline T quad_broadcast(T x, ushort lane, EMULATED_PLACE) {
  return quad_shuffle(x, lane, EMULATED_HERE);
}
template <typename T>
inline T quad_shuffle_xor(T x, ushort mask, EMULATED_PLACE) {
  return emulated_from_lane(x, int(emulator_lane() ^ (mask & 3)), EMULATED_HERE);
}
template <typename T>
inline T quad_sum(T x, EMULATED_PLACE) {
  x = T(x + quad_shuffle_xor(x, 1, EMULATED_HERE));
  return T(x + quad_shuffle_xor(x, 2, EMULATED_HERE));
}
template <typename T>
inline T quad_max(T x, EMULATED_PLACE) {
  x = max(x, quad_shuffle_xor(x, 1, EMULATED_HERE));
  return max(x, quad_shuffle_xor(x, 2, EMULATED_HERE));
}
template <typename T>
inline T quad_min(T x, EMULATED_PLACE) {
  x = min(x, quad_shuffle_xor(x, 1, EMULATED_HERE));
  return min(x, quad_shuffle_xor(x, 2, EMULATED_HERE));
}

}  // namespace metal

// The compiler's functions under metal_simdgroup, which MLX's bf16_math.h calls for bfloat.
template <typename T>
inline T __metal_simd_broadcast(T x, ushort lane) {
  return metal::simd_broadcast(x, lane);
}
template <typename T>
inline T __metal_simd_shuffle(T x, ushort lane) {
  return metal::simd_shuffle(x, lane);
}
template <typename T>
inline T __metal_simd_shuffle_and_fill_down(T x, T filling, ushort delta, ushort modulo) {
  return metal::simd_shuffle_and_fill_down(x, filling, delta, modulo);
}
template <typename T>
inline T __metal_simd_shuffle_and_fill_up(T x, T filling, ushort delta, ushort modulo) {
  return metal::simd_shuffle_and_fill_up(x, filling, delta, modulo);
}
template <typename T>
inline T __metal_simd_shuffle_down(T x, ushort delta) {
  return metal::simd_shuffle_down(x, delta);
}
template <typename T>
inline T __metal_simd_shuffle_up(T x, ushort delta) {
  return metal::simd_shuffle_up(x, delta);
}
template <typename T>
inline T __metal_simd_shuffle_rotate_down(T x, ushort delta) {
  return metal::simd_shuffle_rotate_down(x, delta);
}
template <typename T>
inline T __metal_simd_shuffle_rotate_up(T x, ushort delta) {
  return metal::simd_shuffle_rotate_up(x, delta);
}
template <typename T>
inline T __metal_simd_shuffle_xor(T x, ushort mask) {
  return metal::simd_shuffle_xor(x, mask);
}
inline ushort __metal_get_simdgroup_size(ushort) { return 32; }
inline float __metal_simd_max(float x) { return metal::simd_max(x); }
inline float __metal_simd_min(float x) { return metal::simd_min(x); }
inline float __metal_simd_sum(float x) { return metal::simd_sum(x); }
inline float __metal_simd_product(float x) { return metal::simd_product(x); }
inline float __metal_simd_prefix_exclusive_sum(float x) {
  return metal::simd_prefix_exclusive_sum(x);
}
inline float __metal_simd_prefix_inclusive_sum(float x) {
  return metal::simd_prefix_inclusive_sum(x);
}
inline float __metal_simd_prefix_exclusive_product(float x) {
  return metal::simd_prefix_exclusive_product(x);
}
inline float __metal_simd_prefix_inclusive_product(float x) {
  return metal::simd_prefix_inclusive_product(x);
}
float __metal_simd_xor(float);  // of a bfloat: not covered, fails by this name when it is linked
