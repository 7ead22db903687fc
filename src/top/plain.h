// SPDX-License-Identifier: Apache-2.0
// The same for those who listen: sentences, one a line, without pictures. At first all of it, then
// only what has changed, and no chatter: a figure that moves a little is no change.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "top/view.h"

namespace mete::top {

class Announcer {
 public:
  // What is to be said now. Each sentence is safe to print.
  std::vector<std::string> next(const Scene& scene);

 private:
  struct Said {
    std::string about;  // what would have to change
    std::string name;   // "Job 12, train of alice"
  };
  std::map<std::string, Said> said_;  // by what it is about
  bool first_ = true;
};

}  // namespace mete::top
