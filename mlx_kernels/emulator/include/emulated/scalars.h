// Scalar types. half and bfloat are classes so that every operation rounds to their precision, as
// Metal's does, with either compiler.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef ulong uintptr_t;
typedef long intptr_t;

#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define HUGE_VALF (__builtin_inff())
#define MAXFLOAT 3.40282347e+38f
#define FLT_MAX 3.40282347e+38f
#define FLT_MIN 1.17549435e-38f
#define FLT_EPSILON 1.1920929e-7f
#define HALF_MAX (half(65504.0f))
#define M_PI_F 3.14159265358979323846f
#define M_1_PI_F 0.318309886183790671538f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT1_2_F 0.707106781186547524401f
#define M_SQRT2_F 1.41421356237309504880f
#define M_LN2_F 0.693147180559945309417f
#define M_LOG2E_F 1.44269504088896340736f
#define M_E_F 2.71828182845904523536f
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u

namespace emulated {

template <bool condition, typename T = void>
struct when {};
template <typename T>
struct when<true, T> {
  using type = T;
};

template <typename T>
struct is_integer {
  static constexpr bool value = __is_enum(T);
};
#define EMULATED_INTEGER(T) \
  template <>               \
  struct is_integer<T> {    \
    static constexpr bool value = true; \
  };
EMULATED_INTEGER(bool)
EMULATED_INTEGER(char)
EMULATED_INTEGER(signed char)
EMULATED_INTEGER(unsigned char)
EMULATED_INTEGER(short)
EMULATED_INTEGER(unsigned short)
EMULATED_INTEGER(int)
EMULATED_INTEGER(unsigned int)
EMULATED_INTEGER(long)
EMULATED_INTEGER(unsigned long)
EMULATED_INTEGER(long long)
EMULATED_INTEGER(unsigned long long)
#undef EMULATED_INTEGER

constexpr uint bits_of(float x) { return __builtin_bit_cast(uint, x); }
constexpr float float_of(uint x) { return __builtin_bit_cast(float, x); }

// IEEE 754 binary16, round to nearest even.
constexpr ushort half_bits_exact(float x) {
  uint u = bits_of(x), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return ushort(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return ushort(sign | 0x7c00u);  // rounds to 65536 or more
  if (magnitude < 0x33000001u) return ushort(sign);             // at most half of the smallest
  if (magnitude < 0x38800000u) {                                // subnormal: units of 2^-24
    uint shift = 126u - (magnitude >> 23);
    uint m = (magnitude & 0x7fffffu) | 0x800000u;
    uint q = m >> shift, rest = m & ((1u << shift) - 1), middle = 1u << (shift - 1);
    return ushort(sign | (q + (rest > middle || (rest == middle && (q & 1)))));
  }
  uint m = magnitude - 0x38000000u;
  return ushort(sign | ((m + 0xfffu + ((m >> 13) & 1)) >> 13));
}
constexpr float half_value_exact(ushort h) {
  uint sign = uint(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, m = h & 0x3ffu;
  if (exponent == 31) return float_of(sign | 0x7f800000u | (m << 13));
  if (exponent) return float_of(sign | ((exponent + 112u) << 23) | (m << 13));
  float tiny = float(m) * 5.9604644775390625e-8f;  // 2^-24
  return sign ? -tiny : tiny;
}

#if defined(__F16C__)
typedef float float4_register __attribute__((vector_size(16)));
typedef short short8_register __attribute__((vector_size(16)));
#endif

constexpr ushort half_bits(float x) {
#if defined(__F16C__)
  if (!__builtin_is_constant_evaluated())
    return ushort(__builtin_ia32_vcvtps2ph(float4_register{x, 0, 0, 0}, 0)[0]);
#endif
  return half_bits_exact(x);
}
constexpr float half_value(ushort h) {
#if defined(__F16C__)
  if (!__builtin_is_constant_evaluated())
    return __builtin_ia32_vcvtph2ps(short8_register{short(h), 0, 0, 0, 0, 0, 0, 0})[0];
#endif
  return half_value_exact(h);
}

// bfloat: the upper half of a float, round to nearest even.
constexpr ushort bfloat_bits(float x) {
  uint u = bits_of(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return ushort((u >> 16) | 0x40u);
  return ushort((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}
constexpr float bfloat_value(ushort b) { return float_of(uint(b) << 16); }

}  // namespace emulated

struct bfloat;

struct half {
  ushort bits;
  half() = default;
  constexpr half(float x) : bits(emulated::half_bits(x)) {}
  constexpr half(double x) : half(float(x)) {}
  template <typename T, typename emulated::when<emulated::is_integer<T>::value, int>::type = 0>
  constexpr half(T x) : half(float(x)) {}
  explicit constexpr half(bfloat x);
  constexpr operator float() const { return emulated::half_value(bits); }
  template <typename T, typename emulated::when<emulated::is_integer<T>::value, int>::type = 0>
  explicit constexpr operator T() const {
    return T(emulated::half_value(bits));
  }
};

struct bfloat {
  ushort bits;
  bfloat() = default;
  // Metal converts to bfloat only where the text says so; integers convert by themselves.
  explicit constexpr bfloat(float x) : bits(emulated::bfloat_bits(x)) {}
  explicit constexpr bfloat(double x) : bfloat(float(x)) {}
  explicit constexpr bfloat(half x) : bfloat(float(x)) {}
  template <typename T, typename emulated::when<emulated::is_integer<T>::value, int>::type = 0>
  constexpr bfloat(T x) : bfloat(float(x)) {}
  constexpr operator float() const { return emulated::bfloat_value(bits); }
  template <typename T, typename emulated::when<emulated::is_integer<T>::value, int>::type = 0>
  explicit constexpr operator T() const {
    return T(emulated::bfloat_value(bits));
  }
};

constexpr half::half(bfloat x) : half(float(x)) {}

static_assert(sizeof(half) == 2 && sizeof(bfloat) == 2, "16-bit floats take two bytes");

// Arithmetic of a 16-bit float with itself or an integer rounds to it; with float it is float.
#define EMULATED_ARITHMETIC(H, op)                                                              \
  constexpr H operator op(H a, H b) { return H(float(a) op float(b)); }                         \
  constexpr float operator op(H a, float b) { return float(a) op b; }                           \
  constexpr float operator op(float a, H b) { return a op float(b); }                           \
  template <typename T, typename emulated::when<emulated::is_integer<T>::value, int>::type = 0> \
  constexpr H operator op(H a, T b) {                                                           \
    return H(float(a) op float(H(b)));                                                          \
  }                                                                                             \
  template <typename T, typename emulated::when<emulated::is_integer<T>::value, int>::type = 0> \
  constexpr H operator op(T a, H b) {                                                           \
    return H(float(H(a)) op float(b));                                                          \
  }
#define EMULATED_COMPARISON(H, op)                                                              \
  constexpr bool operator op(H a, H b) { return float(a) op float(b); }                         \
  constexpr bool operator op(H a, float b) { return float(a) op b; }                            \
  constexpr bool operator op(float a, H b) { return a op float(b); }                            \
  template <typename T, typename emulated::when<emulated::is_integer<T>::value, int>::type = 0> \
  constexpr bool operator op(H a, T b) {                                                        \
    return float(a) op float(H(b));                                                             \
  }                                                                                             \
  template <typename T, typename emulated::when<emulated::is_integer<T>::value, int>::type = 0> \
  constexpr bool operator op(T a, H b) {                                                        \
    return float(H(a)) op float(b);                                                             \
  }
#define EMULATED_ASSIGNMENT(H, op)                      \
  template <typename T>                                 \
  constexpr H& operator op##=(H& a, T b) {              \
    return a = H(a op b);                               \
  }
#define EMULATED_FLOAT16(H)                             \
  EMULATED_ARITHMETIC(H, +)                             \
  EMULATED_ARITHMETIC(H, -)                             \
  EMULATED_ARITHMETIC(H, *)                             \
  EMULATED_ARITHMETIC(H, /)                             \
  EMULATED_COMPARISON(H, ==)                            \
  EMULATED_COMPARISON(H, !=)                            \
  EMULATED_COMPARISON(H, <)                             \
  EMULATED_COMPARISON(H, >)                             \
  EMULATED_COMPARISON(H, <=)                            \
  EMULATED_COMPARISON(H, >=)                            \
  EMULATED_ASSIGNMENT(H, +)                             \
  EMULATED_ASSIGNMENT(H, -)                             \
  EMULATED_ASSIGNMENT(H, *)                             \
  EMULATED_ASSIGNMENT(H, /)                             \
  constexpr H operator-(H a) { return H(-float(a)); }   \
  constexpr H operator+(H a) { return a; }              \
  constexpr H& operator++(H& a) { return a = H(float(a) + 1.0f); } \
  constexpr H& operator--(H& a) { return a = H(float(a) - 1.0f); }
EMULATED_FLOAT16(half)
EMULATED_FLOAT16(bfloat)
#undef EMULATED_FLOAT16
#undef EMULATED_ASSIGNMENT
#undef EMULATED_COMPARISON
#undef EMULATED_ARITHMETIC

// Metal has no arithmetic between the two.
float operator+(half, bfloat) = delete;
float operator+(bfloat, half) = delete;
float operator-(half, bfloat) = delete;
float operator-(bfloat, half) = delete;
float operator*(half, bfloat) = delete;
float operator*(bfloat, half) = delete;
float operator/(half, bfloat) = delete;
float operator/(bfloat, half) = delete;
