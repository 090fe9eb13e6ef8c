// metal::numeric_limits.
#pragma once

namespace metal {

template <typename T>
struct numeric_limits;

#define EMULATED_INTEGER_LIMITS(T, lowest_value, max_value)      \
  template <>                                                    \
  struct numeric_limits<T> {                                     \
    static constexpr bool is_specialized = true;                 \
    static constexpr bool is_integer = true;                     \
    static constexpr T max() { return max_value; }               \
    static constexpr T min() { return lowest_value; }            \
    static constexpr T lowest() { return lowest_value; }         \
  };
EMULATED_INTEGER_LIMITS(bool, false, true)
EMULATED_INTEGER_LIMITS(char, -128, 127)
EMULATED_INTEGER_LIMITS(signed char, -128, 127)
EMULATED_INTEGER_LIMITS(uchar, 0, 255)
EMULATED_INTEGER_LIMITS(short, -32768, 32767)
EMULATED_INTEGER_LIMITS(ushort, 0, 65535)
EMULATED_INTEGER_LIMITS(int, -2147483647 - 1, 2147483647)
EMULATED_INTEGER_LIMITS(uint, 0, 4294967295u)
EMULATED_INTEGER_LIMITS(long, -9223372036854775807l - 1, 9223372036854775807l)
EMULATED_INTEGER_LIMITS(ulong, 0, 18446744073709551615ul)
#undef EMULATED_INTEGER_LIMITS

#define EMULATED_FLOAT_LIMITS(T, max_value, min_value, epsilon_value)  \
  template <>                                                          \
  struct numeric_limits<T> {                                           \
    static constexpr bool is_specialized = true;                       \
    static constexpr bool is_integer = false;                          \
    static constexpr T max() { return T(max_value); }                  \
    static constexpr T min() { return T(min_value); }                  \
    static constexpr T lowest() { return T(-max_value); }              \
    static constexpr T epsilon() { return T(epsilon_value); }          \
    static constexpr T infinity() { return T(__builtin_inff()); }      \
    static constexpr T quiet_NaN() { return T(__builtin_nanf("")); }   \
  };
EMULATED_FLOAT_LIMITS(float, 3.40282347e+38f, 1.17549435e-38f, 1.1920929e-7f)
EMULATED_FLOAT_LIMITS(half, 65504.0f, 6.103515625e-5f, 9.765625e-4f)
EMULATED_FLOAT_LIMITS(bfloat, 3.38953139e+38f, 1.17549435e-38f, 7.8125e-3f)
#undef EMULATED_FLOAT_LIMITS

}  // namespace metal
