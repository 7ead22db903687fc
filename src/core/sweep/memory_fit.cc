// SPDX-License-Identifier: Apache-2.0
// See memory_fit.h. A model is a sum of at most five terms with factors >= 0: a constant,
// parameters and products of up to four of them (batch * width, width^2 * depth), each perhaps only
// for one value of a choice (optimizer = adam). Relative errors are minimized, since peaks differ
// by a factor of ten and their noise grows with them. A beam search goes from models of one term to
// larger ones. Six peaks do not tell one model from all others, so that all which explain them
// stay, weighed by fit, size and simplicity (the Bayesian information criterion with a prior), and
// the bound for a point is one that nearly all of them respect: wide where they disagree.
#include "core/sweep/memory_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "core/sweep/maths.h"

namespace mete::core::sweep {

namespace {

constexpr std::size_t kMaxNumbers = 6;
constexpr std::size_t kMaxChoices = 4;
constexpr std::size_t kMaxSeen = 8;  // values of a choice
constexpr std::size_t kMaxTermsTried = 128;
constexpr std::size_t kBeam = 24;
constexpr std::size_t kMaxModels = 256;

// What is assumed before anything is seen: kPriorPeaks errors of size kPriorError, and factors of
// the size kPriorFactor of the largest peak.
constexpr double kPriorPeaks = 2;
constexpr double kPriorError = 0.01;
constexpr double kPriorFactor = 0.7;
// Prior probabilities, as -ln.
constexpr double kCostOfTerm = 2;
constexpr double kCostOfDegree = 0.5;  // of each factor after the first
constexpr double kCostOfReal = 4;      // a number that is no count, such as a learning rate
constexpr double kCostOfChoice = 1;
constexpr double kCertain = 0.9;    // the weight of the models whose bounds are respected
constexpr double kNewChoice = 2.5;  // times the bound of the largest known value

bool is_number(const Value& value) {
  return value.kind == Value::Kind::kInteger || value.kind == Value::Kind::kReal;
}
bool is_whole(double number) { return number == std::floor(number); }

const std::optional<Value>& at(const Point& point, std::size_t parameter) {
  static const std::optional<Value> kAbsent;
  return parameter < point.size() ? point[parameter] : kAbsent;
}

}  // namespace

MemoryFit::MemoryFit(const Space& space, std::span<const Peak> peaks)
    : shares_(space.parameters().size(), 0.0) {
  std::vector<Peak> used;
  const std::size_t n = std::min(peaks.size(), kMaxFitted);
  // The latest half, and as many from the rest.
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t latest = n / 2;
    const std::size_t rest = n - latest;
    used.push_back(i < rest ? peaks[i * (peaks.size() - latest) / rest]
                            : peaks[peaks.size() - n + i]);
  }
  find_parameters(space, used);
  make_terms();
  make_equations(used);
  search();
}

void MemoryFit::find_parameters(const Space& space, std::span<const Peak> peaks) {
  for (std::size_t i = 0; i < space.parameters().size(); ++i) {
    const Parameter& parameter = space.parameters()[i];
    const auto* values = std::get_if<std::vector<Value>>(&parameter.domain);
    if (values != nullptr && values->size() < 2 && !parameter.when) continue;
    const bool number = values == nullptr
                            ? std::get<Range>(parameter.domain).min >= 0
                            : std::all_of(values->begin(), values->end(), [](const Value& value) {
                                return is_number(value) && value.number >= 0;
                              });
    if (number) {
      add_number(parameter, i, peaks);
    } else if (values != nullptr && choices_.size() < kMaxChoices) {
      add_choice(i, peaks);
    }
  }
  // Counts before other numbers, those that vary before others.
  std::stable_sort(numbers_.begin(), numbers_.end(), [](const Number& a, const Number& b) {
    return std::pair(a.whole, a.varied) > std::pair(b.whole, b.varied);
  });
  if (numbers_.size() > kMaxNumbers) numbers_.resize(kMaxNumbers);
}

void MemoryFit::add_number(const Parameter& parameter, std::size_t index,
                           std::span<const Peak> peaks) {
  Number number;
  number.parameter = index;
  if (const auto* values = std::get_if<std::vector<Value>>(&parameter.domain)) {
    number.whole = std::all_of(values->begin(), values->end(),
                               [](const Value& value) { return is_whole(value.number); });
  } else {
    const Range& range = std::get<Range>(parameter.domain);
    number.whole = range.integer || (range.step && is_whole(*range.step) && is_whole(range.min));
  }
  double most = 0;
  for (const Peak& peak : peaks) {
    const std::optional<Value>& value = at(*peak.point, index);
    if (value) most = std::max(most, value->number);
    number.varied = number.varied || value != at(*peaks.front().point, index);
  }
  number.scale = most > 0 && std::isfinite(most) ? most : 1;
  numbers_.push_back(number);
}

void MemoryFit::add_choice(std::size_t index, std::span<const Peak> peaks) {
  Choice choice{index, {}};
  for (const Peak& peak : peaks) {
    const std::optional<Value>& value = at(*peak.point, index);
    const bool seen = std::find(choice.seen.begin(), choice.seen.end(), value) != choice.seen.end();
    if (!seen && choice.seen.size() < kMaxSeen) choice.seen.push_back(value);
  }
  choices_.push_back(std::move(choice));
}

void MemoryFit::make_terms() {
  terms_ = {Term{}};  // the constant
  add_products(kNone, kNone);
  for (std::size_t c = 0; c < choices_.size(); ++c) {
    if (choices_[c].seen.size() < 2) continue;
    for (std::size_t v = 0; v < choices_[c].seen.size(); ++v) {
      const auto choice = static_cast<std::uint16_t>(c);
      const auto value = static_cast<std::uint16_t>(v);
      add_term({kNone, kNone, kNone, kNone}, choice, value);
      add_products(choice, value);
    }
  }
  std::stable_sort(terms_.begin(), terms_.end(),
                   [](const Term& a, const Term& b) { return a.cost < b.cost; });
  if (terms_.size() > kMaxTermsTried) terms_.resize(kMaxTermsTried);
}

// p, p q, p q r with equal factors too but no third powers, and p q r s. A choice is multiplied by
// p and p q alone.
void MemoryFit::add_products(std::uint16_t choice, std::uint16_t value) {
  std::vector<std::uint16_t> varied;
  for (std::size_t i = 0; i < numbers_.size(); ++i)
    if (numbers_[i].varied) varied.push_back(static_cast<std::uint16_t>(i));
  for (std::size_t i = 0; i < varied.size(); ++i) {
    const std::uint16_t p = varied[i];
    add_term({p, kNone, kNone, kNone}, choice, value);
    for (std::size_t j = i; j < varied.size(); ++j) {
      const std::uint16_t q = varied[j];
      add_term({p, q, kNone, kNone}, choice, value);
      if (choice != kNone) continue;
      for (std::size_t k = j; k < varied.size(); ++k) {
        const std::uint16_t r = varied[k];
        if (p != r) add_term({p, q, r, kNone}, kNone, kNone);
        if (p == q || q == r) continue;
        for (std::size_t l = k + 1; l < varied.size(); ++l)
          add_term({p, q, r, varied[l]}, kNone, kNone);
      }
    }
  }
}

void MemoryFit::add_term(const std::array<std::uint16_t, 4>& numbers, std::uint16_t choice,
                         std::uint16_t value) {
  Term term{numbers, choice, value, 0};
  term.cost = kCostOfTerm - kCostOfDegree + (term.choice != kNone ? kCostOfChoice : 0.0);
  if (term.numbers[0] == kNone) term.cost += kCostOfDegree;
  for (const std::uint16_t number : term.numbers)
    if (number != kNone) term.cost += kCostOfDegree + (numbers_[number].whole ? 0.0 : kCostOfReal);
  terms_.push_back(term);
}

double MemoryFit::number_of(std::uint16_t number, const Point& point) const {
  const std::optional<Value>& value = at(point, numbers_[number].parameter);
  // Products of four and their squares stay finite.
  return value && value->number > 0 ? std::min(value->number / numbers_[number].scale, 1e30) : 0;
}

double MemoryFit::value_of(const Term& term, const Point& point) const {
  if (term.choice != kNone) {
    const Choice& choice = choices_[term.choice];
    if (at(point, choice.parameter) != choice.seen[term.value]) return 0;
  }
  double product = 1;
  for (const std::uint16_t number : term.numbers)
    if (number != kNone) product *= number_of(number, point);
  return product;
}

// Normal equations of all terms: each row is divided by its peak, so that the right side is 1.
void MemoryFit::make_equations(std::span<const Peak> peaks) {
  const std::size_t m = terms_.size();
  rows_ = peaks.size();
  scale_ = 1;
  for (const Peak& peak : peaks) scale_ = std::max(scale_, peak.bytes);
  gram_.assign(m * m, 0.0);
  right_.assign(m, 0.0);
  std::vector<double> row(m);
  for (const Peak& peak : peaks) {
    // A peak of almost nothing must not outweigh all others.
    const double times = scale_ / std::max(peak.bytes, scale_ / 1000);
    for (std::size_t j = 0; j < m; ++j) row[j] = value_of(terms_[j], *peak.point) * times;
    for (std::size_t j = 0; j < m; ++j) {
      right_[j] += row[j];
      for (std::size_t i = 0; i <= j; ++i) gram_[j * m + i] += row[i] * row[j];
    }
  }
}

// Cholesky's decomposition of the normal equations of the terms, with the prior of the factors
// added. False: the terms depend on each other.
bool MemoryFit::decompose(Model& model) const {
  constexpr double kRidge = kPriorError * kPriorError / (kPriorFactor * kPriorFactor);
  const std::size_t m = terms_.size();
  auto& root = model.root;
  for (std::size_t j = 0; j < model.size; ++j) {
    for (std::size_t i = 0; i <= j; ++i) {
      double sum = gram_[model.terms[j] * m + model.terms[i]];
      if (i == j) sum += kRidge;
      const double whole = sum;
      for (std::size_t l = 0; l < i; ++l) sum -= root[j * kMaxTerms + l] * root[i * kMaxTerms + l];
      if (i < j) {
        root[j * kMaxTerms + i] = sum / root[i * kMaxTerms + i];
      } else if (sum > whole * 1e-9) {
        root[j * kMaxTerms + j] = root_of(sum);
      } else {
        return false;
      }
    }
  }
  return true;
}

// nullopt: the terms depend on each other, or a factor would not be positive.
std::optional<MemoryFit::Model> MemoryFit::solve(const Set& set) const {
  Model model;
  model.terms = set;
  while (model.size < kMaxTerms && set[model.size] != kNone) ++model.size;
  if (!decompose(model)) return std::nullopt;
  const std::size_t k = model.size;
  auto& factors = model.factors;
  double explained = 0;
  for (std::size_t j = 0; j < k; ++j) {
    double sum = right_[set[j]];
    for (std::size_t i = 0; i < j; ++i) sum -= model.root[j * kMaxTerms + i] * factors[i];
    factors[j] = sum / model.root[j * kMaxTerms + j];
    explained += factors[j] * factors[j];
  }
  for (std::size_t j = k; j-- > 0;) {
    for (std::size_t i = j + 1; i < k; ++i)
      factors[j] -= model.root[i * kMaxTerms + j] * factors[i];
    factors[j] /= model.root[j * kMaxTerms + j];
    if (!(factors[j] > 0)) return std::nullopt;
  }
  const double n = static_cast<double>(rows_);
  const double errors = std::max(0.0, n - explained) + kPriorPeaks * kPriorError * kPriorError;
  model.freedom = n - static_cast<double>(k) + kPriorPeaks;
  model.variance = errors / model.freedom;
  model.score = -(n + kPriorPeaks) / 2 * log_of(errors / (n + kPriorPeaks)) -
                static_cast<double>(k) / 2 * log_of(n);
  for (std::size_t j = 0; j < k; ++j) model.score -= terms_[set[j]].cost;
  return model;
}

// The sets in the beam, each with one more term; each set once.
std::vector<MemoryFit::Set> MemoryFit::larger(std::span<const Set> beam, std::size_t size) const {
  std::vector<Set> sets;
  for (const Set& set : beam) {
    for (std::size_t term = 0; term < terms_.size(); ++term) {
      if (std::find(set.begin(), set.end(), term) != set.end()) continue;
      Set one = set;
      one[size] = static_cast<std::uint16_t>(term);
      std::sort(one.begin(), one.end());
      sets.push_back(one);
    }
  }
  std::sort(sets.begin(), sets.end());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  return sets;
}

void MemoryFit::search() {
  const auto better = [](const Model& a, const Model& b) {
    return a.score != b.score ? a.score > b.score : a.terms < b.terms;
  };
  std::vector<Model> found;
  Set none;
  none.fill(kNone);
  std::vector<Set> beam = {none};
  // Two peaks more than terms, so that the errors say something.
  for (std::size_t size = 0; size < kMaxTerms && size + 3 <= rows_; ++size) {
    std::vector<Model> level;
    for (const Set& set : larger(beam, size))
      if (std::optional<Model> model = solve(set)) level.push_back(*model);
    const std::size_t kept = std::min(level.size(), kMaxModels);
    std::partial_sort(level.begin(), level.begin() + static_cast<std::ptrdiff_t>(kept), level.end(),
                      better);
    level.resize(kept);
    beam.clear();
    for (const Model& model : level)
      if (beam.size() < kBeam) beam.push_back(model.terms);
    found.insert(found.end(), level.begin(), level.end());
  }
  std::sort(found.begin(), found.end(), better);
  weigh(std::move(found));
}

void MemoryFit::weigh(std::vector<Model> found) {
  double sum = 0;
  for (Model& model : found) {
    model.weight = exp_of(model.score - found.front().score);
    if (models_.size() == kMaxModels || model.weight < 1e-4) break;
    sum += model.weight;
    models_.push_back(model);
  }
  for (Model& model : models_) {
    model.weight /= sum;
    std::vector<std::size_t> uses;
    for (std::size_t j = 0; j < model.size; ++j) {
      const Term& term = terms_[model.terms[j]];
      if (term.choice != kNone) uses.push_back(choices_[term.choice].parameter);
      for (const std::uint16_t number : term.numbers)
        if (number != kNone) uses.push_back(numbers_[number].parameter);
    }
    std::sort(uses.begin(), uses.end());
    uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
    for (const std::size_t parameter : uses) shares_[parameter] += model.weight;
  }
}

MemoryFit::Estimate MemoryFit::estimate(const Point& point) const {
  Estimate estimate = of_known(point);
  for (const Choice& choice : choices_) {
    const std::optional<Value>& value = at(point, choice.parameter);
    if (std::find(choice.seen.begin(), choice.seen.end(), value) != choice.seen.end()) continue;
    // A new value is taken for the largest known one, or for more if the choice may matter.
    for (const std::optional<Value>& seen : choice.seen) {
      Point other = point;
      other.resize(std::max(other.size(), choice.parameter + 1));
      other[choice.parameter] = seen;
      const Estimate like = of_known(other);
      estimate.expected = std::max(estimate.expected, like.expected);
      estimate.bound = std::max(estimate.bound, like.bound);
    }
    if (choice.seen.size() < 2 || shares_[choice.parameter] >= kMatters)
      estimate.bound *= kNewChoice;
  }
  for (const Number& number : numbers_) {
    const std::optional<Value>& value = at(point, number.parameter);
    if (number.whole && !number.varied && value && value->number > number.scale)
      estimate.bound *= value->number / number.scale;
  }
  return estimate;
}

MemoryFit::Estimate MemoryFit::of_known(const Point& point) const {
  Estimate estimate;
  struct Bound {
    double bytes;
    double weight;
  };
  std::vector<Bound> bounds;
  for (const Model& model : models_) {
    std::array<double, kMaxTerms> x{};
    double expected = 0;
    for (std::size_t j = 0; j < model.size; ++j) {
      x[j] = value_of(terms_[model.terms[j]], point);
      expected += x[j] * model.factors[j];
    }
    // The variance of the factors, carried over to this point: |root^-1 x|^2.
    double spread = 0;
    for (std::size_t j = 0; j < model.size; ++j) {
      for (std::size_t i = 0; i < j; ++i) x[j] -= model.root[j * kMaxTerms + i] * x[i];
      x[j] /= model.root[j * kMaxTerms + j];
      spread += x[j] * x[j];
    }
    const double deviation = root_of(model.variance * (expected * expected + spread));
    // About the 97.5 % point of Student's distribution.
    const double bound = expected + 1.96 * (1 + 1.7 / model.freedom) * deviation;
    estimate.expected += model.weight * expected * scale_;
    bounds.push_back({bound * scale_, model.weight});
  }
  std::sort(bounds.begin(), bounds.end(),
            [](const Bound& a, const Bound& b) { return a.bytes < b.bytes; });
  double below = 0;
  for (const Bound& bound : bounds) {
    estimate.bound = bound.bytes;
    below += bound.weight;
    if (below >= kCertain) break;
  }
  return estimate;
}

}  // namespace mete::core::sweep
