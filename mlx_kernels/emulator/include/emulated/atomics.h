// Atomic operations, relaxed as all of Metal's are. Threads run one at a time here, so that plain
// operations are atomic; the runtime is told, to count them and to tell them from races.
#pragma once

namespace metal {

enum memory_order { memory_order_relaxed = 0 };

template <typename T>
struct atomic {
  static_assert(is_same_v<T, int> || is_same_v<T, uint> || is_same_v<T, float> ||
                    is_same_v<T, bool> || is_same_v<T, ulong>,
                "Metal has atomics of int, uint, float, bool and ulong");
  T value;
  atomic() = default;
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;
typedef atomic<ulong> atomic_ulong;

template <typename T>
EMULATED_QUIET inline T atomic_load_explicit(const volatile atomic<T>* object, memory_order) {
  emulator_atomic_access(const_cast<atomic<T>*>(object), sizeof(T), 1, 0);
  return object->value;
}
template <typename T>
EMULATED_QUIET inline void atomic_store_explicit(volatile atomic<T>* object, T value, memory_order) {
  emulator_atomic_access(const_cast<atomic<T>*>(object), sizeof(T), 0, 1);
  object->value = value;
}
template <typename T>
EMULATED_QUIET inline T atomic_exchange_explicit(volatile atomic<T>* object, T value, memory_order) {
  emulator_atomic_access(const_cast<atomic<T>*>(object), sizeof(T), 1, 1);
  T before = object->value;
  object->value = value;
  return before;
}
template <typename T>
EMULATED_QUIET inline bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* object,
                                                                 T* expected, T desired,
                                                                 memory_order, memory_order) {
  emulator_atomic_access(const_cast<atomic<T>*>(object), sizeof(T), 1, 1);
  T before = object->value;
  bool equal = __builtin_memcmp(&before, expected, sizeof(T)) == 0;
  if (equal) object->value = desired;
  *expected = before;
  return equal;
}
#define EMULATED_FETCH(name, expression)                                                         \
  template <typename T>                                                                          \
  EMULATED_QUIET inline T atomic_fetch_##name##_explicit(volatile atomic<T>* object, T value,     \
                                                         memory_order) {                         \
    emulator_atomic_access(const_cast<atomic<T>*>(object), sizeof(T), 1, 1);                     \
    T before = object->value;                                                                    \
    object->value = T(expression);                                                               \
    return before;                                                                               \
  }
EMULATED_FETCH(add, before + value)
EMULATED_FETCH(sub, before - value)
EMULATED_FETCH(max, before < value ? value : before)
EMULATED_FETCH(min, value < before ? value : before)
EMULATED_FETCH(and, before & value)
EMULATED_FETCH(or, before | value)
EMULATED_FETCH(xor, before ^ value)
#undef EMULATED_FETCH

}  // namespace metal
