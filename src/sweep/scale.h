// SPDX-License-Identifier: Apache-2.0
// Where a value lies on an axis of a plot, from 0 to 1, and what is written beside the axis:
// linear, logarithmic, or one place for each listed value. Never fails: an axis of one value has
// it in the middle. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "wire/sweep.h"

namespace mete::sweep {

struct Tick {
  double part = 0;
  std::string text;  // not escaped
};

class Scale {
 public:
  // Both finite; low <= high. `log`: low > 0, otherwise it is linear.
  static Scale of_numbers(double low, double high, bool log);
  // Ticks are whole numbers.
  static Scale of_counts(double low, double high);
  static Scale of_names(std::vector<std::string> names);
  // For a metric: logarithmic if all values are positive and far apart. Values far worse than most
  // are beyond the axis, so that one diverged trial does not flatten the plot: farther than `reach`
  // times the distance of the quartiles from the worse one.
  static Scale of_metric(std::vector<double> values, bool maximize, double reach = 3);

  // Clamped to [0, 1].
  double part(double value) const;
  bool shows(double value) const { return value >= low_ && value <= high_; }
  // The value at a part of a numeric scale.
  double value(double part) const;
  // At most about `most`, ascending.
  std::vector<Tick> ticks(std::size_t most) const;
  bool log() const { return log_; }
  std::size_t names() const { return names_.size(); }  // 0: a scale of numbers

 private:
  std::vector<Tick> linear_ticks(std::size_t most) const;
  std::vector<Tick> log_ticks(std::size_t most) const;

  double low_ = 0;
  double high_ = 1;
  bool log_ = false;
  bool whole_ = false;
  std::vector<std::string> names_;
};

// The axis of a parameter, with all values that trials have.
class ParameterScale {
 public:
  ParameterScale(const wire::SweepDocument& sweep, std::size_t parameter);
  const std::string& name() const { return name_; }
  const Scale& scale() const { return scale_; }
  // nullopt: the trial does not use the parameter.
  std::optional<double> part(const wire::SweepDocument::Trial& trial) const;
  // How many different values trials have, counted up to 1,000.
  std::size_t used() const { return used_; }
  bool listed() const { return scale_.names() > 0; }
  // Of a list: the place of the trial's value, in the order of scale().
  std::optional<std::size_t> place(const wire::SweepDocument::Trial& trial) const;

 private:
  std::string name_;
  std::size_t hint_ = 0;  // where the parameter usually is in a trial's
  Scale scale_;
  std::map<std::string, std::size_t, std::less<>> places_;  // of a list, by the text
  std::size_t used_ = 0;

  const core::sweep::Value* find(const wire::SweepDocument::Trial& trial) const;
};

}  // namespace mete::sweep
