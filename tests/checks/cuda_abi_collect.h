// SPDX-License-Identifier: Apache-2.0
// Collects the facts of cuda_abi_facts.def from whichever header was included before this file.
// Include it once per translation unit, after defining COLLECT_NAME.
#include <cstddef>
#include <string>
#include <type_traits>

#include "tests/checks/cuda_abi.h"

namespace {

// A parameter: its size and kind; for a pointer, the size of the number it points to (structs are
// checked by name elsewhere, and some are opaque in our header).
template <typename T>
std::string shape() {
  if constexpr (std::is_pointer_v<T>) {
    using Target = std::remove_pointer_t<T>;
    if constexpr (std::is_arithmetic_v<Target> || std::is_enum_v<Target>) {
      return std::string("*").append(std::to_string(sizeof(Target)));
    } else if constexpr (std::is_pointer_v<Target>) {
      return "**";
    } else {
      return "*";
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::string("f").append(std::to_string(sizeof(T)));
  } else if constexpr (std::is_class_v<T>) {
    return std::string("s").append(std::to_string(sizeof(T)));
  } else {
    return std::to_string(sizeof(T));
  }
}

template <typename Result, typename... Parameters>
std::string signature(Result (*)(Parameters...)) {
  std::string text = shape<Result>() + "(";
  ((text += shape<Parameters>() + ","), ...);
  return text + ")";
}

cuda_abi::Facts collect() {
  cuda_abi::Facts facts;
#define STRUCT(type) facts["sizeof " #type] = std::to_string(sizeof(type));
#define FIELD(type, field) facts[#type "." #field] = std::to_string(offsetof(type, field));
#define VALUE(name) facts[#name] = std::to_string(static_cast<long long>(name));
#define FUNCTION(name) facts[#name "()"] = signature(decltype(&::name){});
#define CUDA_RESULT(name, value) VALUE(name)
#define CUDA_ATTRIBUTE(name, value) VALUE(CU_DEVICE_ATTRIBUTE_##name)
#include "abi/cuda_attributes.def"
#include "abi/cuda_results.def"
#include "tests/checks/cuda_abi_facts.def"
  return facts;
}

}  // namespace

cuda_abi::Facts cuda_abi::COLLECT_NAME() { return collect(); }
