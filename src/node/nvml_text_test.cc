// SPDX-License-Identifier: Apache-2.0
#include "node/nvml_text.h"

#include <gtest/gtest.h>

namespace mete::node {
namespace {

TEST(CardType, IsTheWordThatPeopleUse) {
  const std::pair<const char*, const char*> cases[] = {
      {"NVIDIA H200", "H200"},
      {"NVIDIA H200 NVL", "H200"},
      {"NVIDIA H100 80GB HBM3", "H100"},
      {"NVIDIA H100 PCIe", "H100"},
      {"NVIDIA GH200 480GB", "GH200"},
      {"NVIDIA B200", "B200"},
      {"NVIDIA A100-SXM4-40GB", "A100"},
      {"NVIDIA A100 80GB PCIe", "A100"},
      {"NVIDIA A10G", "A10G"},
      {"NVIDIA L40S", "L40S"},
      {"Tesla T4", "T4"},
      {"Tesla V100-SXM2-16GB", "V100"},
      {"Tesla K80", "K80"},
      {"NVIDIA GeForce RTX 4090", "RTX4090"},
      {"NVIDIA GeForce RTX 3060 Laptop GPU", "RTX3060"},
      {"NVIDIA GeForce GTX 1080 Ti", "GTX1080Ti"},
      {"NVIDIA RTX A6000", "A6000"},
      {"NVIDIA RTX 6000 Ada Generation", "RTX6000"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTXPRO6000"},
      {"Quadro RTX 8000", "RTX8000"},
      {"NVIDIA TITAN V", "TITANV"},
      {"NVIDIA", "NVIDIA"},
      {"", ""},
      {"Unheard Of", "Unheard"},
  };
  for (const auto& [name, type] : cases) EXPECT_EQ(card_type(name), type) << name;
}

TEST(NvmlError, CodesDriveBehaviour) {
  EXPECT_EQ(nvml_error("nvmlInit_v2", NVML_ERROR_DRIVER_NOT_LOADED).code, ErrorCode::kNotFound);
  EXPECT_EQ(nvml_error("f", NVML_ERROR_NO_PERMISSION).code, ErrorCode::kDenied);
  EXPECT_EQ(nvml_error("f", NVML_ERROR_NOT_SUPPORTED).code, ErrorCode::kUnsupported);
  EXPECT_EQ(nvml_error("f", NVML_ERROR_TIMEOUT).code, ErrorCode::kBusy);
  EXPECT_EQ(nvml_error("f", NVML_ERROR_UNKNOWN).code, ErrorCode::kIo);
  EXPECT_EQ(nvml_error("nvmlInit_v2", NVML_ERROR_DRIVER_NOT_LOADED).message,
            "nvmlInit_v2: driver not loaded (9)");
}

}  // namespace
}  // namespace mete::node
