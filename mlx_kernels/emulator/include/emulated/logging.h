// Shader logging: accepted, and dropped.
#pragma once

namespace metal {
struct os_log {
  constexpr os_log(const char*, const char*) {}
  template <typename... A>
  void log_debug(const char*, A...) const {}
  template <typename... A>
  void log_info(const char*, A...) const {}
  template <typename... A>
  void log(const char*, A...) const {}
};
}  // namespace metal
