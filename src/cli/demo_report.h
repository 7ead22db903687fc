// SPDX-License-Identifier: Apache-2.0
// The output of `mete demo`: steps, the commands that a user could type, what was seen and what was
// checked. As text it is printed as it happens; as JSON it is one document at the end,
// docs/formats/demo.schema.json.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "cli/output.h"

namespace mete::cli {

// A program of the demo, from the daemon's records.
struct DemoJob {
  std::string name;
  std::string request;
  std::string outcome;
  Bytes share;  // on each card
  std::optional<Bytes> peak;
};

class DemoReport {
 public:
  explicit DemoReport(const Output& output);

  void intro(const std::string& text) const;
  void step(const std::string& title);
  // "mete run ...", as a user would type it.
  void command(const std::string& text);
  // A message of a program or of mete. A long line is broken after ';' and between words.
  void quote(const std::string& line) const;
  // Returns `holds`. `evidence` is what was seen, printed if it does not hold.
  bool check(bool holds, const std::string& what, const std::string& evidence);
  void jobs(std::vector<DemoJob> jobs);

  // Shows what the demo waits for: on a terminal, a line that vanishes.
  void progress(std::string_view what, int seconds) const;
  void end_progress() const;

  std::size_t failed() const { return failed_; }
  std::size_t checks() const { return checks_; }
  void print(const std::string& text) const;

  std::string document(bool simulated, const std::string& card_name, Bytes capacity) const;

 private:
  struct Check {
    std::string what;
    bool holds = false;
    std::string evidence;
  };
  struct Step {
    std::string title;
    std::vector<std::string> commands;
    std::vector<Check> checks;
  };

  std::string styled(std::string_view style, const std::string& text) const;

  const Output& output_;
  bool colour_;
  bool shows_progress_;
  std::size_t width_;
  mutable bool drawn_ = false;
  std::vector<Step> steps_;
  std::vector<DemoJob> jobs_;
  std::size_t checks_ = 0;
  std::size_t failed_ = 0;
};

}  // namespace mete::cli
