// vec<T, N>, its swizzles, and the packed types.
#pragma once

namespace metal {

template <typename T, int N>
struct vec;

// The components that a swizzle names, in the vector whose storage it shares.
template <typename T, int M, int A, int B, int C, int D>
struct emulated_swizzle {
  T stored[1];
  constexpr operator vec<T, M>() const;
  emulated_swizzle& operator=(const vec<T, M>& v);
  emulated_swizzle& operator=(const emulated_swizzle& v) {
    return *this = static_cast<vec<T, M>>(v);
  }
  template <int A2, int B2, int C2, int D2>
  emulated_swizzle& operator=(const emulated_swizzle<T, M, A2, B2, C2, D2>& v) {
    return *this = static_cast<vec<T, M>>(v);
  }
  T operator[](int i) const { return stored[i == 0 ? A : i == 1 ? B : i == 2 ? C : D]; }
};

template <typename V>
struct emulated_vector {
  static constexpr int size = 0;
};
template <typename T, int N>
struct emulated_vector<vec<T, N>> {
  static constexpr int size = N;
  using element = T;
};
template <typename T, int M, int A, int B, int C, int D>
struct emulated_vector<emulated_swizzle<T, M, A, B, C, D>> {
  static constexpr int size = M;
  using element = T;
};

// Scalars that become a component of a vector of T by themselves.
template <typename S, typename T>
struct emulated_scalar {
  static constexpr bool value =
      emulated::is_integer<S>::value || is_same_v<S, float> || is_same_v<S, double> ||
      is_same_v<S, half> || is_same_v<S, T>;
};

#define EMULATED_SWIZZLE2(name, A, B) emulated_swizzle<T, 2, A, B, 0, 0> name;
#define EMULATED_SWIZZLE3(name, A, B, C) emulated_swizzle<T, 3, A, B, C, 0> name;
#define EMULATED_SWIZZLE4(name, A, B, C, D) emulated_swizzle<T, 4, A, B, C, D> name;

template <typename T>
struct alignas(2 * sizeof(T)) vec<T, 2> {
  union {
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
    EMULATED_SWIZZLE2(xy, 0, 1)
    EMULATED_SWIZZLE2(yx, 1, 0)
    EMULATED_SWIZZLE2(xx, 0, 0)
    EMULATED_SWIZZLE2(yy, 1, 1)
    EMULATED_SWIZZLE4(xyxy, 0, 1, 0, 1)
    EMULATED_SWIZZLE4(xxyy, 0, 0, 1, 1)
  };
  vec() = default;
  vec(const vec& v) = default;
  constexpr vec(T a, T b) : x(a), y(b) {}
  template <typename S, enable_if_t<emulated_scalar<S, T>::value, int> = 0>
  constexpr vec(S a) : x(T(a)), y(T(a)) {}
  template <typename U, int A, int B, int C, int D>
  explicit constexpr vec(const emulated_swizzle<U, 2, A, B, C, D>& v) 
      : vec(v.operator vec<U, 2>()) {}
  template <typename U>
  explicit constexpr vec(const vec<U, 2>& v) : x(T(v.x)), y(T(v.y)) {}
  constexpr vec& operator=(const vec& v) {
    x = v.x;
    y = v.y;
    return *this;
  }
  T& operator[](int i) { return (&x)[i]; }
  const T& operator[](int i) const { return (&x)[i]; }
};

template <typename T>
struct alignas(4 * sizeof(T)) vec<T, 3> {
  union {
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
    EMULATED_SWIZZLE2(xy, 0, 1)
    EMULATED_SWIZZLE2(xz, 0, 2)
    EMULATED_SWIZZLE2(yz, 1, 2)
    EMULATED_SWIZZLE2(yx, 1, 0)
    EMULATED_SWIZZLE2(zx, 2, 0)
    EMULATED_SWIZZLE2(zy, 2, 1)
    EMULATED_SWIZZLE3(xyz, 0, 1, 2)
    EMULATED_SWIZZLE3(zyx, 2, 1, 0)
    EMULATED_SWIZZLE3(yzx, 1, 2, 0)
    EMULATED_SWIZZLE3(zxy, 2, 0, 1)
  };
  vec() = default;
  constexpr vec(const vec& v) : x(v.x), y(v.y), z(v.z) {}
  constexpr vec(T a, T b, T c) : x(a), y(b), z(c) {}
  constexpr vec(const vec<T, 2>& a, T c) : x(a.x), y(a.y), z(c) {}
  constexpr vec(T a, const vec<T, 2>& b) : x(a), y(b.x), z(b.y) {}
  template <typename S, enable_if_t<emulated_scalar<S, T>::value, int> = 0>
  constexpr vec(S a) : x(T(a)), y(T(a)), z(T(a)) {}
  template <typename U, int A, int B, int C, int D>
  explicit constexpr vec(const emulated_swizzle<U, 3, A, B, C, D>& v) 
      : vec(v.operator vec<U, 3>()) {}
  template <typename U>
  explicit constexpr vec(const vec<U, 3>& v) : x(T(v.x)), y(T(v.y)), z(T(v.z)) {}
  // By component: the fourth place of storage is not part of the value.
  constexpr vec& operator=(const vec& v) {
    x = v.x;
    y = v.y;
    z = v.z;
    return *this;
  }
  T& operator[](int i) { return (&x)[i]; }
  const T& operator[](int i) const { return (&x)[i]; }
};

template <typename T>
struct alignas(4 * sizeof(T)) vec<T, 4> {
  union {
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
    EMULATED_SWIZZLE2(xy, 0, 1)
    EMULATED_SWIZZLE2(zw, 2, 3)
    EMULATED_SWIZZLE2(xz, 0, 2)
    EMULATED_SWIZZLE2(yw, 1, 3)
    EMULATED_SWIZZLE2(yz, 1, 2)
    EMULATED_SWIZZLE2(xw, 0, 3)
    EMULATED_SWIZZLE2(yx, 1, 0)
    EMULATED_SWIZZLE2(wz, 3, 2)
    EMULATED_SWIZZLE3(xyz, 0, 1, 2)
    EMULATED_SWIZZLE3(yzw, 1, 2, 3)
    EMULATED_SWIZZLE4(xyzw, 0, 1, 2, 3)
    EMULATED_SWIZZLE4(wzyx, 3, 2, 1, 0)
    EMULATED_SWIZZLE4(zwxy, 2, 3, 0, 1)
    EMULATED_SWIZZLE4(yxwz, 1, 0, 3, 2)
    EMULATED_SWIZZLE4(xxxx, 0, 0, 0, 0)
    EMULATED_SWIZZLE4(yyyy, 1, 1, 1, 1)
    EMULATED_SWIZZLE4(zzzz, 2, 2, 2, 2)
    EMULATED_SWIZZLE4(wwww, 3, 3, 3, 3)
  };
  vec() = default;
  vec(const vec& v) = default;
  constexpr vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  constexpr vec(const vec<T, 2>& a, const vec<T, 2>& b) : x(a.x), y(a.y), z(b.x), w(b.y) {}
  constexpr vec(const vec<T, 2>& a, T c, T d) : x(a.x), y(a.y), z(c), w(d) {}
  constexpr vec(T a, T b, const vec<T, 2>& c) : x(a), y(b), z(c.x), w(c.y) {}
  constexpr vec(T a, const vec<T, 2>& b, T d) : x(a), y(b.x), z(b.y), w(d) {}
  constexpr vec(const vec<T, 3>& a, T d) : x(a.x), y(a.y), z(a.z), w(d) {}
  constexpr vec(T a, const vec<T, 3>& b) : x(a), y(b.x), z(b.y), w(b.z) {}
  template <typename S, enable_if_t<emulated_scalar<S, T>::value, int> = 0>
  constexpr vec(S s) : x(T(s)), y(T(s)), z(T(s)), w(T(s)) {}
  template <typename U, int A, int B, int C, int D>
  explicit constexpr vec(const emulated_swizzle<U, 4, A, B, C, D>& v) 
      : vec(v.operator vec<U, 4>()) {}
  template <typename U>
  explicit constexpr vec(const vec<U, 4>& v) : x(T(v.x)), y(T(v.y)), z(T(v.z)), w(T(v.w)) {}
  constexpr vec& operator=(const vec& v) {
    x = v.x;
    y = v.y;
    z = v.z;
    w = v.w;
    return *this;
  }
  T& operator[](int i) { return (&x)[i]; }
  const T& operator[](int i) const { return (&x)[i]; }
};

#undef EMULATED_SWIZZLE2
#undef EMULATED_SWIZZLE3
#undef EMULATED_SWIZZLE4

template <typename T, int M, int A, int B, int C, int D>
constexpr emulated_swizzle<T, M, A, B, C, D>::operator vec<T, M>() const {
  if constexpr (M == 2) return vec<T, 2>(stored[A], stored[B]);
  if constexpr (M == 3) return vec<T, 3>(stored[A], stored[B], stored[C]);
  if constexpr (M == 4) return vec<T, 4>(stored[A], stored[B], stored[C], stored[D]);
}
template <typename T, int M, int A, int B, int C, int D>
emulated_swizzle<T, M, A, B, C, D>& emulated_swizzle<T, M, A, B, C, D>::operator=(
    const vec<T, M>& v) {
  stored[A] = v.x;
  stored[B] = v.y;
  if constexpr (M > 2) stored[C] = v.z;
  if constexpr (M > 3) stored[D] = v.w;
  return *this;
}

#define EMULATED_EACH(T, N, expression)                                                   \
  if constexpr (N == 2) {                                                                 \
    return {T(expression(x)), T(expression(y))};                                          \
  } else if constexpr (N == 3) {                                                          \
    return {T(expression(x)), T(expression(y)), T(expression(z))};                        \
  } else {                                                                                \
    return {T(expression(x)), T(expression(y)), T(expression(z)), T(expression(w))};      \
  }

// The vector types of two operands of which at least one is a vector or a swizzle.
template <typename L, typename R, typename = void>
struct emulated_operands {};
template <typename L, typename R>
struct emulated_operands<
    L, R,
    enable_if_t<(emulated_vector<L>::size > 0 && emulated_vector<R>::size > 0 &&
                 emulated_vector<L>::size == emulated_vector<R>::size)>> {
  static_assert(is_same_v<typename emulated_vector<L>::element, typename emulated_vector<R>::element>,
                "vectors of different element types need an explicit conversion");
  using T = typename emulated_vector<L>::element;
  static constexpr int N = emulated_vector<L>::size;
};
template <typename L, typename R>
struct emulated_operands<L, R,
                         enable_if_t<(emulated_vector<L>::size > 0 && emulated_vector<R>::size == 0 &&
                                      is_convertible_v<R, typename emulated_vector<L>::element>)>> {
  using T = typename emulated_vector<L>::element;
  static constexpr int N = emulated_vector<L>::size;
};
template <typename L, typename R>
struct emulated_operands<L, R,
                         enable_if_t<(emulated_vector<L>::size == 0 && emulated_vector<R>::size > 0 &&
                                      is_convertible_v<L, typename emulated_vector<R>::element>)>> {
  using T = typename emulated_vector<R>::element;
  static constexpr int N = emulated_vector<R>::size;
};

#define EMULATED_BINARY(op, R_element)                                                         \
  template <typename L, typename R, typename O = emulated_operands<L, R>,                      \
            typename T = typename O::T, int N = O::N>                                          \
  constexpr vec<R_element, N> operator op(const L& l, const R& r) {                            \
    const vec<T, N> a(l), b(r);                                                                \
    if constexpr (N == 2) {                                                                    \
      return {R_element(a.x op b.x), R_element(a.y op b.y)};                                   \
    } else if constexpr (N == 3) {                                                             \
      return {R_element(a.x op b.x), R_element(a.y op b.y), R_element(a.z op b.z)};            \
    } else {                                                                                   \
      return {R_element(a.x op b.x), R_element(a.y op b.y), R_element(a.z op b.z),             \
              R_element(a.w op b.w)};                                                          \
    }                                                                                          \
  }
EMULATED_BINARY(+, T)
EMULATED_BINARY(-, T)
EMULATED_BINARY(*, T)
EMULATED_BINARY(/, T)
EMULATED_BINARY(%, T)
EMULATED_BINARY(&, T)
EMULATED_BINARY(|, T)
EMULATED_BINARY(^, T)
EMULATED_BINARY(<<, T)
EMULATED_BINARY(>>, T)
EMULATED_BINARY(==, bool)
EMULATED_BINARY(!=, bool)
EMULATED_BINARY(<, bool)
EMULATED_BINARY(>, bool)
EMULATED_BINARY(<=, bool)
EMULATED_BINARY(>=, bool)
EMULATED_BINARY(&&, bool)
EMULATED_BINARY(||, bool)
#undef EMULATED_BINARY

#define EMULATED_COMPOUND(op)                                                       \
  template <typename T, int N, typename R>                                          \
  constexpr vec<T, N>& operator op##=(vec<T, N>& a, const R& b) {                   \
    return a = a op b;                                                              \
  }                                                                                 \
  template <typename T, int M, int A, int B, int C, int D, typename R>              \
  emulated_swizzle<T, M, A, B, C, D>& operator op##=(                               \
      emulated_swizzle<T, M, A, B, C, D>& a, const R& b) {                          \
    return a = static_cast<vec<T, M>>(a) op b;                                      \
  }
EMULATED_COMPOUND(+)
EMULATED_COMPOUND(-)
EMULATED_COMPOUND(*)
EMULATED_COMPOUND(/)
EMULATED_COMPOUND(&)
EMULATED_COMPOUND(|)
EMULATED_COMPOUND(^)
EMULATED_COMPOUND(<<)
EMULATED_COMPOUND(>>)
#undef EMULATED_COMPOUND

template <typename T, int N>
constexpr vec<T, N> operator-(const vec<T, N>& v) {
#define EMULATED_NEGATE(c) -v.c
  EMULATED_EACH(T, N, EMULATED_NEGATE)
#undef EMULATED_NEGATE
}
template <typename T, int N>
constexpr vec<T, N> operator~(const vec<T, N>& v) {
#define EMULATED_NOT(c) ~v.c
  EMULATED_EACH(T, N, EMULATED_NOT)
#undef EMULATED_NOT
}
template <typename T, int N>
constexpr vec<bool, N> operator!(const vec<T, N>& v) {
#define EMULATED_NOT(c) !v.c
  EMULATED_EACH(bool, N, EMULATED_NOT)
#undef EMULATED_NOT
}

// Packed vectors: aligned as their elements.
template <typename T, int N>
struct emulated_packed {
  T stored[N];
  emulated_packed() = default;
  emulated_packed(const vec<T, N>& v) { *this = v; }
  emulated_packed& operator=(const vec<T, N>& v) {
    for (int i = 0; i < N; i++) stored[i] = v[i];
    return *this;
  }
  operator vec<T, N>() const {
    vec<T, N> v;
    for (int i = 0; i < N; i++) v[i] = stored[i];
    return v;
  }
  T& operator[](int i) { return stored[i]; }
  const T& operator[](int i) const { return stored[i]; }
};

#define EMULATED_VECTOR_TYPES(T)             \
  typedef metal::vec<T, 2> T##2;             \
  typedef metal::vec<T, 3> T##3;             \
  typedef metal::vec<T, 4> T##4;             \
  typedef metal::emulated_packed<T, 2> packed_##T##2; \
  typedef metal::emulated_packed<T, 3> packed_##T##3; \
  typedef metal::emulated_packed<T, 4> packed_##T##4;

}  // namespace metal

EMULATED_VECTOR_TYPES(char)
EMULATED_VECTOR_TYPES(uchar)
EMULATED_VECTOR_TYPES(short)
EMULATED_VECTOR_TYPES(ushort)
EMULATED_VECTOR_TYPES(int)
EMULATED_VECTOR_TYPES(uint)
EMULATED_VECTOR_TYPES(long)
EMULATED_VECTOR_TYPES(ulong)
EMULATED_VECTOR_TYPES(half)
EMULATED_VECTOR_TYPES(bfloat)
EMULATED_VECTOR_TYPES(float)
typedef metal::vec<bool, 2> bool2;
typedef metal::vec<bool, 3> bool3;
typedef metal::vec<bool, 4> bool4;
#undef EMULATED_VECTOR_TYPES

// Reinterprets bits: sizes must agree.
template <typename To, typename From>
inline To as_type(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs types of one size");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

namespace metal {
using ::as_type;
}
