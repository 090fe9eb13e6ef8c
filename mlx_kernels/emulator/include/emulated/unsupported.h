// What Metal has and this emulator has not: each fails by its own name when a kernel uses it.
#pragma once

namespace metal {

template <typename T>
struct emulated_never {
  static constexpr bool value = false;
};

#define EMULATED_UNSUPPORTED_FUNCTION(name) \
  template <typename... A>                  \
  void name(A&&...) = delete;
EMULATED_UNSUPPORTED_FUNCTION(atomic_thread_fence)
EMULATED_UNSUPPORTED_FUNCTION(quad_ballot)
EMULATED_UNSUPPORTED_FUNCTION(quad_all)
EMULATED_UNSUPPORTED_FUNCTION(quad_any)
EMULATED_UNSUPPORTED_FUNCTION(quad_product)
EMULATED_UNSUPPORTED_FUNCTION(quad_shuffle_up)
EMULATED_UNSUPPORTED_FUNCTION(quad_shuffle_down)
EMULATED_UNSUPPORTED_FUNCTION(quad_prefix_inclusive_sum)
EMULATED_UNSUPPORTED_FUNCTION(quad_prefix_exclusive_sum)
EMULATED_UNSUPPORTED_FUNCTION(simdgroup_async_copy)
EMULATED_UNSUPPORTED_FUNCTION(dfdx)
EMULATED_UNSUPPORTED_FUNCTION(dfdy)
EMULATED_UNSUPPORTED_FUNCTION(normalize)
EMULATED_UNSUPPORTED_FUNCTION(cross)
EMULATED_UNSUPPORTED_FUNCTION(reflect)
EMULATED_UNSUPPORTED_FUNCTION(smoothstep)
EMULATED_UNSUPPORTED_FUNCTION(ilogb)
EMULATED_UNSUPPORTED_FUNCTION(pack_float_to_unorm4x8)
EMULATED_UNSUPPORTED_FUNCTION(unpack_unorm4x8_to_float)
#undef EMULATED_UNSUPPORTED_FUNCTION

#define EMULATED_UNSUPPORTED_TYPE(name)                                                    \
  template <typename T, int... N>                                                          \
  struct name {                                                                            \
    static_assert(emulated_never<T>::value, "the emulator has no metal::" #name);           \
  };
EMULATED_UNSUPPORTED_TYPE(texture1d)
EMULATED_UNSUPPORTED_TYPE(texture2d)
EMULATED_UNSUPPORTED_TYPE(texture3d)
EMULATED_UNSUPPORTED_TYPE(texture_buffer)
EMULATED_UNSUPPORTED_TYPE(visible_function_table)
EMULATED_UNSUPPORTED_TYPE(imageblock)
#undef EMULATED_UNSUPPORTED_TYPE

}  // namespace metal
