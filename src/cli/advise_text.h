// SPDX-License-Identifier: Apache-2.0
// The output of `mete advise`: values in, text or the document mete.advise/1 out. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/cluster/model.h"

namespace mete::cli {

struct AdviseReport {
  std::string request;     // "--gpu 2x30G --cpus 8"
  std::string job;         // "12"; "": a request was given
  std::string gpu;         // what that job should request; "": as it did
  std::string why;         // reason for `gpu`
  bool own_cards = false;  // cards, not instance types
  struct Option {
    core::cluster::NodeSpec node;
    std::int32_t share = 0;  // thousandths of each card
  };
  std::vector<Option> options;  // the smallest first
};

std::string advise_json(const AdviseReport& report, const std::string& at);
std::string advise_text(const AdviseReport& report);

}  // namespace mete::cli
