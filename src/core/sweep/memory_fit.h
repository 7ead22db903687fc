// SPDX-License-Identifier: Apache-2.0
// The statistics of memory_model.h: many small models of a peak, weighed by how well they explain
// the peaks seen. Pure; equal observations give equal answers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/sweep/space.h"

namespace mete::core::sweep {

// A peak of a point, in bytes.
struct Peak {
  const Point* point = nullptr;
  double bytes = 0;
};

class MemoryFit {
 public:
  // At most kMaxFitted of the peaks are used, the latest and others evenly chosen.
  static constexpr std::size_t kMaxFitted = 256;
  MemoryFit(const Space& space, std::span<const Peak> peaks);

  // The expected peak of a point, and a bound that few trials exceed. Bytes; finite, >= 0.
  struct Estimate {
    double expected = 0;
    double bound = 0;
  };
  Estimate estimate(const Point& point) const;
  // Whether the memory may depend on a parameter.
  bool drives(std::size_t parameter) const { return shares_[parameter] >= kDrives; }

 private:
  // Weights of the models that use a parameter.
  static constexpr double kDrives = 0.05;      // it may matter
  static constexpr double kMatters = 0.3;      // it probably does
  static constexpr std::size_t kMaxTerms = 5;  // of a model, the constant included
  static constexpr std::uint16_t kNone = 0xffff;

  // A parameter that may drive memory: a number, or a choice with a few values.
  struct Number {
    std::size_t parameter = 0;
    double scale = 1;    // the largest seen
    bool whole = false;  // a count, such as a batch size
    bool varied = false;
  };
  struct Choice {
    std::size_t parameter = 0;
    std::vector<std::optional<Value>> seen;
  };
  // A product of up to four numbers, only for one value of a choice if there is one.
  struct Term {
    std::array<std::uint16_t, 4> numbers = {kNone, kNone, kNone, kNone};
    std::uint16_t choice = kNone;
    std::uint16_t value = kNone;
    double cost = 0;  // -ln of its prior probability
  };
  using Set = std::array<std::uint16_t, kMaxTerms>;  // of terms, ascending, then kNone
  struct Model {
    Set terms{};
    std::size_t size = 0;
    std::array<double, kMaxTerms> factors{};
    std::array<double, kMaxTerms * kMaxTerms> root{};  // Cholesky's, of the normal equations
    double variance = 0;                               // of a relative error
    double freedom = 0;                                // degrees of
    double score = 0;
    double weight = 0;
  };

  Estimate of_known(const Point& point) const;  // with values of choices that were seen
  void find_parameters(const Space& space, std::span<const Peak> peaks);
  void add_number(const Parameter& parameter, std::size_t index, std::span<const Peak> peaks);
  void add_choice(std::size_t index, std::span<const Peak> peaks);
  void make_terms();
  void add_products(std::uint16_t choice, std::uint16_t value);
  void add_term(const std::array<std::uint16_t, 4>& numbers, std::uint16_t choice,
                std::uint16_t value);
  double value_of(const Term& term, const Point& point) const;
  double number_of(std::uint16_t number, const Point& point) const;
  void make_equations(std::span<const Peak> peaks);
  std::vector<Set> larger(std::span<const Set> beam, std::size_t size) const;
  void search();
  bool decompose(Model& model) const;
  std::optional<Model> solve(const Set& set) const;
  void weigh(std::vector<Model> found);

  std::vector<Number> numbers_;
  std::vector<Choice> choices_;
  std::vector<Term> terms_;  // the first is the constant
  std::vector<double> gram_;
  std::vector<double> right_;
  std::size_t rows_ = 0;
  double scale_ = 1;  // bytes of the largest peak
  std::vector<Model> models_;
  std::vector<double> shares_;  // by parameter: the weight of the models that use it
};

}  // namespace mete::core::sweep
