// SPDX-License-Identifier: Apache-2.0
// The screen for listeners: sentences, one per line, without pictures. First everything, then only
// changes; a small change of a figure does not count.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "top/view.h"

namespace mete::top {

class Announcer {
 public:
  // The sentences for now. Each is safe to print.
  std::vector<std::string> next(const Scene& scene);

 private:
  struct Said {
    std::string about;  // a change of this is worth a sentence
    std::string name;   // "Job 12, train of alice"
  };
  std::map<std::string, Said> said_;  // by the thing
  bool first_ = true;
};

}  // namespace mete::top
