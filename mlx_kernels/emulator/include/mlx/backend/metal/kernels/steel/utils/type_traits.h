// Stands for MLX's type_traits.h, whose specialisations differ only in their address space.
#pragma once

#include <metal_stdlib>

namespace metal {

template <typename T>
struct is_empty : bool_constant<__is_empty(T)> {};
template <typename T>
constexpr bool is_empty_v = is_empty<T>::value;

template <typename... Ts>
struct make_void {
  using type = void;
};
template <typename... Ts>
using void_t = typename make_void<Ts...>::type;

template <typename T>
struct is_static : bool_constant<is_empty<remove_cv_t<T>>::value> {};

template <typename T>
struct pointer_element {};
template <typename T>
struct pointer_element<T*> {
  using type = remove_cv_t<T>;
};
template <typename T>
using pointer_element_t = typename pointer_element<remove_cv_t<T>>::type;

}  // namespace metal
