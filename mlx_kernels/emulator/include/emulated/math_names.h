// The names of Metal's math functions on floats, with what computes them on the CPU.
#pragma once

#define __METAL_MAYBE_FAST_MATH__ 0
#define __METAL_FAST_MATH__ 1
#define __METAL_PRECISE_MATH__ 2

// name, implementation on float
#define EMULATED_UNARY_MATH(F)        \
  F(acos, __builtin_acosf)            \
  F(acosh, __builtin_acoshf)          \
  F(asin, __builtin_asinf)            \
  F(asinh, __builtin_asinhf)          \
  F(atan, __builtin_atanf)            \
  F(atanh, __builtin_atanhf)          \
  F(ceil, __builtin_ceilf)            \
  F(cos, __builtin_cosf)              \
  F(cosh, __builtin_coshf)            \
  F(cospi, emulated::cospi)           \
  F(exp, __builtin_expf)              \
  F(exp2, __builtin_exp2f)            \
  F(exp10, emulated::exp10)           \
  F(fabs, __builtin_fabsf)            \
  F(floor, __builtin_floorf)          \
  F(fract, emulated::fract)           \
  F(log, __builtin_logf)              \
  F(log2, __builtin_log2f)            \
  F(log10, __builtin_log10f)          \
  F(rint, __builtin_rintf)            \
  F(round, __builtin_roundf)          \
  F(rsqrt, emulated::rsqrt)           \
  F(saturate, emulated::saturate)     \
  F(sign, emulated::sign)             \
  F(sin, __builtin_sinf)              \
  F(sinh, __builtin_sinhf)            \
  F(sinpi, emulated::sinpi)           \
  F(sqrt, __builtin_sqrtf)            \
  F(tan, __builtin_tanf)              \
  F(tanh, __builtin_tanhf)            \
  F(tanpi, emulated::tanpi)           \
  F(trunc, __builtin_truncf)
#define EMULATED_BINARY_MATH(F)       \
  F(atan2, __builtin_atan2f)          \
  F(copysign, __builtin_copysignf)    \
  F(divide, emulated::divide)         \
  F(fdim, __builtin_fdimf)            \
  F(fmax, __builtin_fmaxf)            \
  F(fmin, __builtin_fminf)            \
  F(fmod, __builtin_fmodf)            \
  F(nextafter, __builtin_nextafterf)  \
  F(pow, __builtin_powf)              \
  F(powr, emulated::powr)
#define EMULATED_TERNARY_MATH(F)      \
  F(fma, __builtin_fmaf)              \
  F(fmax3, emulated::max3)            \
  F(fmedian3, emulated::median3)      \
  F(fmin3, emulated::min3)
