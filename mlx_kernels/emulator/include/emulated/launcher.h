// How a kernel function takes its arguments from the runtime: buffers by pointer or reference,
// a thread's attributes by value (compile.py writes the call).
#pragma once

namespace emulated {

template <typename A>
struct buffer_argument;
template <typename T>
struct buffer_argument<T*> {
  EMULATED_QUIET static T* from(void* p) { return static_cast<T*>(p); }
};
template <typename T>
struct buffer_argument<T&> {
  EMULATED_QUIET static T& from(void* p) { return *static_cast<T*>(p); }
};

template <typename A>
struct attribute_argument {
  EMULATED_QUIET static A from(const uint* p) { return A(p[0]); }
};
template <typename T>
struct attribute_argument<metal::vec<T, 2>> {
  EMULATED_QUIET static metal::vec<T, 2> from(const uint* p) { return {T(p[0]), T(p[1])}; }
};
template <typename T>
struct attribute_argument<metal::vec<T, 3>> {
  EMULATED_QUIET static metal::vec<T, 3> from(const uint* p) {
    return {T(p[0]), T(p[1]), T(p[2])};
  }
};

// The type of parameter i of a function type.
template <typename F, int i>
struct parameter;
template <typename A, typename... Rest>
struct parameter<void(A, Rest...), 0> {
  using type = A;
};
template <typename A, typename... Rest, int i>
struct parameter<void(A, Rest...), i> {
  using type = typename parameter<void(Rest...), i - 1>::type;
};

}  // namespace emulated
