// metal, metal::fast and metal::precise math. Both round as the C library's float functions do: the
// emulator finds wrong kernels, not the last bit of Apple's exp.
#pragma once

#include "emulated/math_names.h"

namespace emulated {

inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
inline float exp10(float x) { return __builtin_powf(10.0f, x); }
inline float fract(float x) {
  float f = x - __builtin_floorf(x);
  return f < 1.0f ? f : 0x1.fffffep-1f;
}
inline float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f * x; }
inline float saturate(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
inline float sinpi(float x) { return __builtin_sinf(x * M_PI_F); }
inline float cospi(float x) { return __builtin_cosf(x * M_PI_F); }
inline float tanpi(float x) { return __builtin_tanf(x * M_PI_F); }
inline float powr(float x, float y) { return __builtin_powf(x, y); }
inline float max3(float a, float b, float c) { return __builtin_fmaxf(a, __builtin_fmaxf(b, c)); }
inline float min3(float a, float b, float c) { return __builtin_fminf(a, __builtin_fminf(b, c)); }
inline float median3(float a, float b, float c) {
  return __builtin_fmaxf(__builtin_fminf(a, b), __builtin_fminf(__builtin_fmaxf(a, b), c));
}
inline float divide(float a, float b) { return a / b; }

}  // namespace emulated

#define EMULATED_UNARY(name, on_float)                                   \
  inline float name(float x) { return on_float(x); }                     \
  inline half name(half x) { return half(on_float(float(x))); }          \
  template <typename T, int N>                                           \
  inline vec<T, N> name(const vec<T, N>& v) {                            \
    vec<T, N> r;                                                         \
    for (int i = 0; i < N; i++) r[i] = T(name(v[i]));                    \
    return r;                                                            \
  }
#define EMULATED_BINARY(name, on_float)                                        \
  inline float name(float x, float y) { return on_float(x, y); }               \
  inline half name(half x, half y) { return half(on_float(float(x), float(y))); } \
  template <typename T, int N>                                                 \
  inline vec<T, N> name(const vec<T, N>& v, const vec<T, N>& w) {              \
    vec<T, N> r;                                                               \
    for (int i = 0; i < N; i++) r[i] = T(name(v[i], w[i]));                    \
    return r;                                                                  \
  }
#define EMULATED_TERNARY(name, on_float)                                             \
  inline float name(float x, float y, float z) { return on_float(x, y, z); }         \
  inline half name(half x, half y, half z) {                                         \
    return half(on_float(float(x), float(y), float(z)));                             \
  }                                                                                  \
  template <typename T, int N>                                                       \
  inline vec<T, N> name(const vec<T, N>& v, const vec<T, N>& w, const vec<T, N>& u) { \
    vec<T, N> r;                                                                     \
    for (int i = 0; i < N; i++) r[i] = T(name(v[i], w[i], u[i]));                    \
    return r;                                                                        \
  }

#define EMULATED_ORDER(T)                                                    \
  constexpr T max(T a, T b) { return a < b ? b : a; }                        \
  constexpr T min(T a, T b) { return b < a ? b : a; }                        \
  constexpr T clamp(T x, T low, T high) { return min(max(x, low), high); }   \
  constexpr T max3(T a, T b, T c) { return max(a, max(b, c)); }              \
  constexpr T min3(T a, T b, T c) { return min(a, min(b, c)); }              \
  constexpr T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }
#define EMULATED_ABS(T) \
  constexpr T abs(T x) { return x < 0 ? static_cast<T>(-x) : x; }
#define EMULATED_FLOAT_ORDER(T)                                                           \
  inline T max(T a, T b) { return fmax(a, b); }                                           \
  inline T min(T a, T b) { return fmin(a, b); }                                           \
  inline T clamp(T x, T low, T high) { return fmin(fmax(x, low), high); }                 \
  inline T max3(T a, T b, T c) { return fmax3(a, b, c); }                                 \
  inline T min3(T a, T b, T c) { return fmin3(a, b, c); }                                 \
  inline T median3(T a, T b, T c) { return fmedian3(a, b, c); }                           \
  inline T abs(T x) { return fabs(x); }                                                   \
  inline T mix(T x, T y, T a) { return T(x + T(T(y - x) * a)); }                          \
  inline T step(T edge, T x) { return T(x < edge ? 0.0f : 1.0f); }                        \
  inline T ldexp(T x, int k) { return T(__builtin_ldexpf(float(x), k)); }                 \
  inline T frexp(T x, int& e) { return T(__builtin_frexpf(float(x), &e)); }               \
  inline T modf(T x, T& whole) {                                                          \
    float w, f = __builtin_modff(float(x), &w);                                           \
    whole = T(w);                                                                         \
    return T(f);                                                                          \
  }                                                                                       \
  inline T sincos(T x, T& c) {                                                            \
    c = T(__builtin_cosf(float(x)));                                                      \
    return T(__builtin_sinf(float(x)));                                                   \
  }
#define EMULATED_VECTOR_ORDER                                                             \
  template <typename T, int N>                                                            \
  inline vec<T, N> max(const vec<T, N>& a, const vec<T, N>& b) {                          \
    vec<T, N> r;                                                                          \
    for (int i = 0; i < N; i++) r[i] = T(max(a[i], b[i]));                                \
    return r;                                                                             \
  }                                                                                       \
  template <typename T, int N>                                                            \
  inline vec<T, N> min(const vec<T, N>& a, const vec<T, N>& b) {                          \
    vec<T, N> r;                                                                          \
    for (int i = 0; i < N; i++) r[i] = T(min(a[i], b[i]));                                \
    return r;                                                                             \
  }                                                                                       \
  template <typename T, int N>                                                            \
  inline vec<T, N> clamp(const vec<T, N>& x, const vec<T, N>& low, const vec<T, N>& high) { \
    return min(max(x, low), high);                                                        \
  }                                                                                       \
  template <typename T, int N>                                                            \
  inline vec<T, N> abs(const vec<T, N>& a) {                                              \
    vec<T, N> r;                                                                          \
    for (int i = 0; i < N; i++) r[i] = T(abs(a[i]));                                      \
    return r;                                                                             \
  }

#define EMULATED_MATH                   \
  EMULATED_UNARY_MATH(EMULATED_UNARY)   \
  EMULATED_BINARY_MATH(EMULATED_BINARY) \
  EMULATED_TERNARY_MATH(EMULATED_TERNARY) \
  EMULATED_FLOAT_ORDER(float)           \
  EMULATED_FLOAT_ORDER(half)            \
  EMULATED_VECTOR_ORDER

namespace metal {

EMULATED_ORDER(char)
EMULATED_ORDER(int8_t)
EMULATED_ORDER(uchar)
EMULATED_ORDER(short)
EMULATED_ORDER(ushort)
EMULATED_ORDER(int)
EMULATED_ORDER(uint)
EMULATED_ORDER(long)
EMULATED_ORDER(ulong)
EMULATED_ABS(char)
EMULATED_ABS(int8_t)
EMULATED_ABS(short)
EMULATED_ABS(int)
EMULATED_ABS(long)
constexpr uint abs(uint x) { return x; }
EMULATED_MATH

namespace fast {
EMULATED_MATH
}
namespace precise {
EMULATED_MATH
}

inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isnan(half x) { return __builtin_isnan(float(x)); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(half x) { return __builtin_isinf(float(x)); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(half x) { return __builtin_isfinite(float(x)); }
inline bool isnormal(float x) { return __builtin_isnormal(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }
inline bool signbit(half x) { return __builtin_signbit(float(x)); }

template <typename T>
constexpr T select(T a, T b, bool c) {
  return c ? b : a;
}
template <typename T, int N>
inline vec<T, N> select(const vec<T, N>& a, const vec<T, N>& b, const vec<bool, N>& c) {
  vec<T, N> r;
  for (int i = 0; i < N; i++) r[i] = c[i] ? b[i] : a[i];
  return r;
}
template <int N>
inline bool any(const vec<bool, N>& v) {
  bool r = false;
  for (int i = 0; i < N; i++) r |= v[i];
  return r;
}
template <int N>
inline bool all(const vec<bool, N>& v) {
  bool r = true;
  for (int i = 0; i < N; i++) r &= v[i];
  return r;
}
inline bool any(bool b) { return b; }
inline bool all(bool b) { return b; }

template <typename T, int N>
inline T dot(const vec<T, N>& a, const vec<T, N>& b) {
  T r = T(a[0] * b[0]);
  for (int i = 1; i < N; i++) r = T(r + T(a[i] * b[i]));
  return r;
}
template <typename T, int N>
inline T length_squared(const vec<T, N>& a) {
  return dot(a, a);
}
template <typename T, int N>
inline T length(const vec<T, N>& a) {
  return sqrt(dot(a, a));
}

#define EMULATED_BITS(T, unsigned_type, bits)                                              \
  inline T popcount(T x) { return T(__builtin_popcountl(unsigned_type(x))); }              \
  inline T clz(T x) {                                                                      \
    return x ? T(__builtin_clzl(unsigned_type(x)) - (64 - bits)) : T(bits);                \
  }                                                                                        \
  inline T ctz(T x) { return x ? T(__builtin_ctzl(unsigned_type(x))) : T(bits); }          \
  inline T extract_bits(T x, uint offset, uint count) {                                    \
    return count ? T(T(x << (bits - offset - count)) >> (bits - count)) : T(0);            \
  }                                                                                        \
  inline T insert_bits(T base, T insert, uint offset, uint count) {                        \
    unsigned_type mask =                                                                   \
        unsigned_type(count >= bits ? ~unsigned_type(0) : (unsigned_type(1) << count) - 1) \
        << offset;                                                                         \
    return T((unsigned_type(base) & ~mask) | ((unsigned_type(insert) << offset) & mask));  \
  }                                                                                        \
  inline T rotate(T x, T by) {                                                             \
    uint n = uint(by) % bits;                                                              \
    return n ? T((unsigned_type(x) << n) | (unsigned_type(x) >> (bits - n))) : x;          \
  }
EMULATED_BITS(uchar, uchar, 8)
EMULATED_BITS(ushort, ushort, 16)
EMULATED_BITS(uint, uint, 32)
EMULATED_BITS(int, uint, 32)
EMULATED_BITS(ulong, ulong, 64)
EMULATED_BITS(long, ulong, 64)
#undef EMULATED_BITS
inline uint reverse_bits(uint x) {
  uint r = 0;
  for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
  return r;
}
inline int mulhi(int a, int b) { return int((long(a) * long(b)) >> 32); }
inline uint mulhi(uint a, uint b) { return uint((ulong(a) * ulong(b)) >> 32); }
inline int mul24(int a, int b) { return a * b; }
inline uint mul24(uint a, uint b) { return a * b; }
inline int mad24(int a, int b, int c) { return a * b + c; }
inline uint mad24(uint a, uint b, uint c) { return a * b + c; }

}  // namespace metal

// The compiler's functions under metal_math, which MLX's bf16_math.h calls for bfloat.
#define EMULATED_BUILTIN1(name, on_float) \
  inline float __metal_##name(float x, int) { return on_float(x); }
#define EMULATED_BUILTIN2(name, on_float) \
  inline float __metal_##name(float x, float y, int) { return on_float(x, y); }
#define EMULATED_BUILTIN3(name, on_float) \
  inline float __metal_##name(float x, float y, float z, int) { return on_float(x, y, z); }
EMULATED_UNARY_MATH(EMULATED_BUILTIN1)
EMULATED_BINARY_MATH(EMULATED_BUILTIN2)
EMULATED_TERNARY_MATH(EMULATED_BUILTIN3)
inline float __metal_nextafter(float x, float y) { return __builtin_nextafterf(x, y); }
inline float __metal_fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline float __metal_frexp(float x, int* e) { return __builtin_frexpf(x, e); }
inline float __metal_ldexp(float x, int k, int) { return __builtin_ldexpf(x, k); }
inline bool __metal_isnan(float x, int) { return __builtin_isnan(x); }
inline bool __metal_isinf(float x, int) { return __builtin_isinf(x); }
inline bool __metal_isfinite(float x, int) { return __builtin_isfinite(x); }
inline bool __metal_isnormal(float x, int) { return __builtin_isnormal(x); }
inline bool __metal_isunordered(float x, float y) { return __builtin_isunordered(x, y); }
inline bool __metal_signbit(float x, int) { return __builtin_signbit(x); }
inline float __metal_sincos(float x, float& c, int) {
  c = __builtin_cosf(x);
  return __builtin_sinf(x);
}
