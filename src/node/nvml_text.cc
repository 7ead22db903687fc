// SPDX-License-Identifier: Apache-2.0
#include "node/nvml_text.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"

namespace mete::node {
namespace {

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool has_digit(std::string_view word) {
  return word.find_first_of("0123456789") != std::string_view::npos;
}

std::string_view result_name(nvmlReturn_t result) {
  switch (result) {
    case NVML_ERROR_UNINITIALIZED:
      return "uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "invalid argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "not supported";
    case NVML_ERROR_NO_PERMISSION:
      return "no permission";
    case NVML_ERROR_NOT_FOUND:
      return "not found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "insufficient size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "driver not loaded";
    case NVML_ERROR_TIMEOUT:
      return "timeout";
    case NVML_ERROR_LIBRARY_NOT_FOUND:
      return "library not found";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return "function not found";
    case NVML_ERROR_GPU_IS_LOST:
      return "the GPU is lost";
    case NVML_ERROR_RESET_REQUIRED:
      return "the GPU needs a reset";
    case NVML_ERROR_OPERATING_SYSTEM:
      return "blocked by the operating system";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return "driver and library are of different versions";
    case NVML_ERROR_IN_USE:
      return "in use";
    case NVML_ERROR_MEMORY:
      return "out of memory";
    default:
      return "error";
  }
}

}  // namespace

std::string card_type(std::string_view name) {
  std::vector<std::string_view> words;
  for (const std::string_view word : base::split(name, ' '))
    if (!word.empty() && !is_one_of(word, {"NVIDIA", "Tesla", "Quadro", "GeForce", "GRID"}))
      words.push_back(word);
  if (words.empty()) return std::string(base::trim(name));
  // A family name belongs to the number behind it: RTX 4090, RTX PRO 6000, GTX 1080 Ti, TITAN V.
  // "RTX A6000" does not need it.
  std::string type;
  std::size_t at = 0;
  while (at + 1 < words.size() && is_one_of(words[at], {"RTX", "GTX", "TITAN", "PRO"}))
    type += words[at++];
  const std::string_view model = words[at].substr(0, words[at].find('-'));
  const bool names_itself =
      !type.empty() && model.size() > 1 && model[0] >= 'A' && model[0] <= 'Z' && has_digit(model);
  type = names_itself ? std::string(model) : type + std::string(model);
  if (at + 1 < words.size() && is_one_of(words[at + 1], {"Ti", "SUPER", "D"}))
    type += words[at + 1];
  return type;
}

Error nvml_error(std::string_view function, nvmlReturn_t result) {
  std::string message = std::string(function) + ": " + std::string(result_name(result)) + " (" +
                        std::to_string(static_cast<int>(result)) + ")";
  switch (result) {
    case NVML_ERROR_DRIVER_NOT_LOADED:
    case NVML_ERROR_LIBRARY_NOT_FOUND:
    case NVML_ERROR_GPU_NOT_FOUND:
    case NVML_ERROR_NOT_FOUND:
      return Error::not_found(std::move(message));
    case NVML_ERROR_NO_PERMISSION:
    case NVML_ERROR_OPERATING_SYSTEM:
      return Error::denied(std::move(message));
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return Error::io(std::move(message))
          .with_hint("the driver was updated while it was loaded: reboot, or reload its module");
    case NVML_ERROR_TIMEOUT:
    case NVML_ERROR_IN_USE:
    case NVML_ERROR_NOT_READY:
      return Error::busy(std::move(message));
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
    case NVML_ERROR_DEPRECATED:
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return Error::unsupported(std::move(message));
    default:
      return Error::io(std::move(message));
  }
}

}  // namespace mete::node
