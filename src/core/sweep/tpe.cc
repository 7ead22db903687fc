// SPDX-License-Identifier: Apache-2.0
// A tree-structured Parzen estimator (Bergstra and others, 2011), with kernels over all parameters
// together (Falkner and others, 2018). The best eighth of the results is good. Other trials are
// bad: also failed ones, and those that still run, so that parallel trials spread. Each side gets a
// density (parzen.h). Candidates are drawn from the good density; that with the highest ratio of
// good to bad density is suggested. A parameter is learned from the trials that use it.
#include <algorithm>
#include <cmath>

#include "core/sweep/maths.h"
#include "core/sweep/parzen.h"
#include "core/sweep/sampler.h"

namespace mete::core::sweep {

namespace {

constexpr std::size_t kCandidates = 32;
constexpr std::size_t kTries = 20 * kCandidates;  // for candidates that `keep` holds for
constexpr double kGoodPart = 0.12;
constexpr std::size_t kMostGood = 25;
// The bad density is made of about this many points at most, and of fewer if there are many axes,
// so that a suggestion takes milliseconds.
constexpr std::size_t kMostBad = 1'000;
constexpr std::size_t kLeastBad = 100;
constexpr std::size_t kMostBadNumbers = 20'000;  // points times axes
// Weights of the even density, in places.
constexpr double kEvenGood = 4;
constexpr double kEvenBad = 6;
// When all candidates have been tried, spaces of up to this many points are searched for another.
constexpr std::uint64_t kMostSearched = 10'000;
constexpr std::uint64_t kStream = std::uint64_t{1} << 40;  // streams of parameters are below

// The way between points and places: which parameters are axes, and where their values are.
class Map {
 public:
  explicit Map(const Space& space);
  const std::vector<Axis>& axes() const { return axes_; }
  Place place_of(const Point& point) const;
  Point point_at(const Place& place) const;

 private:
  struct Scale {
    std::size_t parameter = 0;
    // Of a list of numbers: the rank of each value by size, and the other way round.
    std::vector<std::size_t> ranks, by_rank;
  };
  const Space* space_;
  std::vector<Axis> axes_;
  std::vector<Scale> scales_;  // of each axis
};

std::size_t index_of(double unit, std::size_t count) {
  return std::min(static_cast<std::size_t>(unit * static_cast<double>(count)), count - 1);
}
double middle_of_cell(std::size_t index, std::size_t count) {
  return (static_cast<double>(index) + 0.5) / static_cast<double>(count);
}

bool are_numbers(const std::vector<Value>& values) {
  return std::all_of(values.begin(), values.end(), [](const Value& value) {
    return value.kind == Value::Kind::kInteger || value.kind == Value::Kind::kReal;
  });
}

Map::Map(const Space& space) : space_(&space) {
  for (std::size_t i = 0; i < space.parameters().size(); ++i) {
    const std::optional<std::uint64_t> count = space.values_of(i);
    if (count && *count < 2) continue;  // fixed
    Scale scale{i, {}, {}};
    Axis axis;
    if (const auto* values = std::get_if<std::vector<Value>>(&space.parameters()[i].domain)) {
      if (are_numbers(*values)) {
        for (std::size_t v = 0; v < values->size(); ++v) scale.by_rank.push_back(v);
        std::stable_sort(scale.by_rank.begin(), scale.by_rank.end(),
                         [&](std::size_t a, std::size_t b) {
                           return (*values)[a].number < (*values)[b].number;
                         });
        scale.ranks.resize(values->size());
        for (std::size_t r = 0; r < values->size(); ++r) scale.ranks[scale.by_rank[r]] = r;
        axis.cell = 1 / static_cast<double>(values->size());
      } else {
        axis.choices = values->size();
      }
    } else if (count) {
      axis.cell = 1 / static_cast<double>(*count);
    }
    axes_.push_back(axis);
    scales_.push_back(std::move(scale));
  }
}

Place Map::place_of(const Point& point) const {
  Place place;
  place.reserve(axes_.size());
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const Scale& scale = scales_[a];
    const std::optional<Value>& value = point[scale.parameter];
    double at = value ? space_->unit_of(scale.parameter, *value) : std::nan("");
    if (value && axes_[a].choices > 0)
      at = static_cast<double>(index_of(at, axes_[a].choices));
    else if (value && !scale.ranks.empty())
      at = middle_of_cell(scale.ranks[index_of(at, scale.ranks.size())], scale.ranks.size());
    place.push_back(at);
  }
  return place;
}

Point Map::point_at(const Place& place) const {
  std::vector<double> unit(space_->parameters().size(), 0.5);
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const Scale& scale = scales_[a];
    double at = place[a];
    if (axes_[a].choices > 0)
      at = middle_of_cell(static_cast<std::size_t>(at), axes_[a].choices);
    else if (!scale.ranks.empty())
      at = middle_of_cell(scale.by_rank[index_of(at, scale.ranks.size())], scale.ranks.size());
    unit[scale.parameter] = at;
  }
  return space_->at(unit);
}

// The indices of the trials with a result, from the best to the worst. Equal results: the earlier
// one first.
std::vector<std::size_t> by_loss(std::span<const Scored> scored) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < scored.size(); ++i)
    if (scored[i].loss && !std::isnan(*scored[i].loss)) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return *scored[a].loss < *scored[b].loss; });
  return order;
}

// Better results weigh more: the best of k has ln(k + 1) - ln 1, the last ln(k + 1) - ln k.
Parzen density_of_good(const Map& map, std::span<const Scored> scored,
                       std::span<const std::size_t> good) {
  std::vector<Place> places;
  std::vector<double> weights;
  double sum = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    places.push_back(map.place_of(scored[good[i]].point));
    weights.push_back(log_of(static_cast<double>(good.size() + 1)) -
                      log_of(static_cast<double>(i + 1)));
    sum += weights.back();
  }
  for (double& weight : weights) weight *= static_cast<double>(good.size()) / sum;
  return Parzen(map.axes(), places, std::move(weights), kEvenGood);
}

// If there are many results, every k-th of them is taken, in the order of their losses.
Parzen density_of_bad(const Map& map, std::span<const Scored> scored,
                      std::span<const std::size_t> good, std::span<const std::size_t> ordered,
                      std::span<const Point> running) {
  std::vector<const Point*> points;
  for (const std::size_t i : ordered.subspan(good.size())) points.push_back(&scored[i].point);
  for (const Scored& trial : scored)
    if (!trial.loss || std::isnan(*trial.loss)) points.push_back(&trial.point);
  const std::size_t axes = std::max<std::size_t>(map.axes().size(), 1);
  const std::size_t most = std::clamp(kMostBadNumbers / axes, kLeastBad, kMostBad);
  const std::size_t step = (points.size() + most - 1) / most;
  std::vector<Place> places;
  for (std::size_t i = 0; i < points.size(); i += step) places.push_back(map.place_of(*points[i]));
  for (const Point& point : running) places.push_back(map.place_of(point));
  std::vector<double> weights(places.size(), 1);
  return Parzen(map.axes(), places, std::move(weights), kEvenBad);
}

struct Candidate {
  Point point;
  double score = 0;
};
// Best first. Points that `keep` refuses are left out, unless no other point is found.
std::vector<Candidate> candidates_of(const Space& space, const Map& map, const Parzen& good,
                                     const Parzen& bad, Dice& dice) {
  std::vector<Candidate> candidates;
  Point refused;
  for (std::size_t i = 0; i < kTries && candidates.size() < kCandidates; ++i) {
    Point point = map.point_at(good.sample(dice));
    if (!space.keeps(point)) {
      refused = std::move(point);
      continue;
    }
    const Place place = map.place_of(point);
    const double score = good.log_density(place) - bad.log_density(place);
    candidates.push_back({std::move(point), score});
  }
  if (candidates.empty()) candidates.push_back({std::move(refused), 0});
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  return candidates;
}

// A point of a small finite space that no trial has: the first one after a random point.
std::optional<Point> untried(const Space& space, std::span<const Scored> scored,
                             std::span<const Point> running, Dice& dice) {
  const std::optional<std::uint64_t> size = space.size();
  if (!size || *size > kMostSearched) return std::nullopt;
  std::vector<std::uint64_t> tried;
  for (const Scored& trial : scored) tried.push_back(hash(trial.point));
  for (const Point& point : running) tried.push_back(hash(point));
  std::sort(tried.begin(), tried.end());
  const std::uint64_t start = dice.below(*size);
  for (std::uint64_t i = 0; i < *size; ++i) {
    std::optional<Point> point = space.grid((start + i) % *size);
    if (point && space.keeps(*point) &&
        !std::binary_search(tried.begin(), tried.end(), hash(*point)))
      return point;
  }
  return std::nullopt;
}

}  // namespace

Point suggest(const Space& space, std::uint64_t seed, std::uint64_t n,
              std::span<const Scored> scored, std::span<const Point> running) {
  const std::vector<std::size_t> ordered = by_loss(scored);
  if (ordered.size() < kTpeStart)
    return space.at(unit_point({Method::kRandom, seed}, space.parameters().size(), n));

  const auto part = static_cast<std::size_t>(kGoodPart * static_cast<double>(ordered.size())) + 1;
  const std::span<const std::size_t> good{ordered.data(), std::min(part, kMostGood)};
  const Map map(space);
  const Parzen good_density = density_of_good(map, scored, good);
  const Parzen bad_density = density_of_bad(map, scored, good, ordered, running);
  Dice dice(seed, kStream + n);
  const std::vector<Candidate> candidates =
      candidates_of(space, map, good_density, bad_density, dice);
  const auto is_tried = [&](const Point& point) {
    return std::any_of(scored.begin(), scored.end(),
                       [&](const Scored& trial) { return trial.point == point; }) ||
           std::find(running.begin(), running.end(), point) != running.end();
  };
  for (const Candidate& candidate : candidates)
    if (!is_tried(candidate.point)) return candidate.point;
  if (std::optional<Point> other = untried(space, scored, running, dice)) return *std::move(other);
  return candidates.front().point;
}

}  // namespace mete::core::sweep
