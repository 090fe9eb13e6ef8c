// The type traits of metal_type_traits that kernels use.
#pragma once

namespace metal {

template <typename T, T v>
struct integral_constant {
  static constexpr T value = v;
  using value_type = T;
  using type = integral_constant;
  constexpr operator T() const { return v; }
  constexpr T operator()() const { return v; }
};
template <bool b>
using bool_constant = integral_constant<bool, b>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <bool condition, typename T = void>
struct enable_if {};
template <typename T>
struct enable_if<true, T> {
  using type = T;
};
template <bool condition, typename T = void>
using enable_if_t = typename enable_if<condition, T>::type;

template <bool condition, typename T, typename F>
struct conditional {
  using type = T;
};
template <typename T, typename F>
struct conditional<false, T, F> {
  using type = F;
};
template <bool condition, typename T, typename F>
using conditional_t = typename conditional<condition, T, F>::type;

template <typename A, typename B>
struct is_same : false_type {};
template <typename A>
struct is_same<A, A> : true_type {};
template <typename A, typename B>
constexpr bool is_same_v = is_same<A, B>::value;

template <typename T>
struct remove_const {
  using type = T;
};
template <typename T>
struct remove_const<const T> {
  using type = T;
};
template <typename T>
struct remove_volatile {
  using type = T;
};
template <typename T>
struct remove_volatile<volatile T> {
  using type = T;
};
template <typename T>
struct remove_cv {
  using type = typename remove_volatile<typename remove_const<T>::type>::type;
};
template <typename T>
struct remove_reference {
  using type = T;
};
template <typename T>
struct remove_reference<T&> {
  using type = T;
};
template <typename T>
struct remove_reference<T&&> {
  using type = T;
};
template <typename T>
struct remove_pointer {
  using type = T;
};
template <typename T>
struct remove_pointer<T*> {
  using type = T;
};
template <typename T>
using remove_const_t = typename remove_const<T>::type;
template <typename T>
using remove_cv_t = typename remove_cv<T>::type;
template <typename T>
using remove_reference_t = typename remove_reference<T>::type;
#ifndef EMULATED_STRICT
// Address spaces are no part of a type here; in the strict check they are.
template <typename T>
using remove_addrspace_t = T;
#endif
template <typename T>
using remove_pointer_t = typename remove_pointer<T>::type;

template <typename T>
T&& declval();

template <typename T>
struct is_floating_point
    : bool_constant<is_same_v<remove_cv_t<T>, float> || is_same_v<remove_cv_t<T>, half> ||
                    is_same_v<remove_cv_t<T>, bfloat>> {};
template <typename T>
struct is_integral : bool_constant<emulated::is_integer<remove_cv_t<T>>::value && !__is_enum(T)> {};
template <typename T>
struct is_arithmetic : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template <typename T>
struct is_pointer : false_type {};
template <typename T>
struct is_pointer<T*> : true_type {};
template <typename T>
struct is_signed : bool_constant<is_floating_point<T>::value> {};
template <typename T>
struct is_unsigned : false_type {};
#define EMULATED_SIGN(S, U)                \
  template <>                              \
  struct is_signed<S> : true_type {};      \
  template <>                              \
  struct is_unsigned<U> : true_type {};    \
  template <>                              \
  struct emulated_unsigned<S> {            \
    using type = U;                        \
  };                                       \
  template <>                              \
  struct emulated_unsigned<U> {            \
    using type = U;                        \
  };
template <typename T>
struct emulated_unsigned {};
EMULATED_SIGN(signed char, unsigned char)
EMULATED_SIGN(short, unsigned short)
EMULATED_SIGN(int, unsigned int)
EMULATED_SIGN(long, unsigned long)
#undef EMULATED_SIGN
template <typename T>
using make_unsigned_t = typename emulated_unsigned<T>::type;

template <typename T>
constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <typename T>
constexpr bool is_integral_v = is_integral<T>::value;
template <typename T>
constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <typename T>
constexpr bool is_pointer_v = is_pointer<T>::value;
template <typename T>
constexpr bool is_signed_v = is_signed<T>::value;
template <typename T>
constexpr bool is_unsigned_v = is_unsigned<T>::value;

template <typename From, typename To>
struct is_convertible {
 private:
  static void take(To);
  template <typename F>
  static decltype(take(declval<F>()), true_type()) test(int);
  template <typename F>
  static false_type test(...);

 public:
  static constexpr bool value = decltype(test<From>(0))::value;
};
template <typename From, typename To>
constexpr bool is_convertible_v = is_convertible<From, To>::value;

template <typename... B>
struct _disjunction : false_type {};
template <typename B, typename... Rest>
struct _disjunction<B, Rest...> : bool_constant<B::value || _disjunction<Rest...>::value> {};
template <typename... B>
struct _conjunction : true_type {};
template <typename B, typename... Rest>
struct _conjunction<B, Rest...> : bool_constant<B::value && _conjunction<Rest...>::value> {};

}  // namespace metal
