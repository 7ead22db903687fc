// SPDX-License-Identifier: Apache-2.0
// See maths.h. log_of and exp_of reduce their argument by powers of two, exactly, and sum a Taylor
// series of fixed length. normal_cdf uses the rational approximations of the error function by
// W. J. Cody (1969), normal_quantile those of M. J. Wichura (AS 241, 1988). Every constant is
// rounded once, by the compiler, and every operation is an IEEE 754 basic one.
#include "core/sweep/maths.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace mete::core::sweep {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// ln 2 in two parts: the last 16 bits of the first are zero, so that its product with an exponent
// is exact.
constexpr double kLn2High = 0x1.62e42fefap-1;
constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
constexpr double kRootOfTwo = 0x1.6a09e667f3bcdp+0;

// 2^exponent, -1022 <= exponent <= 1023.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// c[0] + c[1] x + … + c[N - 1] x^(N - 1)
template <std::size_t N>
double polynomial(const std::array<double, N>& c, double x) {
  double sum = c[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// 2/3, 2/5, 2/7, …: 2 atanh(s) = s (2 + 2/3 s^2 + 2/5 s^4 + …)
constexpr std::array<double, 12> kAtanh = [] {
  std::array<double, 12> c{};
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = 2.0 / static_cast<double>(2 * i + 3);
  return c;
}();

// 1/2!, 1/3!, …; factorials up to 15! are exact.
constexpr std::array<double, 13> kExp = [] {
  std::array<double, 13> c{};
  double factorial = 1;
  for (std::size_t i = 0; i < c.size(); ++i) {
    factorial *= static_cast<double>(i + 2);
    c[i] = 1.0 / factorial;
  }
  return c;
}();

// exp(-x^2 / 2) for x >= 0. x^2 alone would lose digits: x = q + r, with q a multiple of 1/16.
double bell(double x) {
  if (x > 39) return 0;
  const double q = static_cast<double>(static_cast<int>(x * 16)) / 16;
  const double rest = (x - q) * (x + q);
  return exp_of(-q * q / 2) * exp_of(-rest / 2);
}

// erf(y) / y for y^2 <= 0.46875^2, as a function of y^2.
constexpr std::array<double, 5> kErfTop = {3.20937758913846947e03, 3.77485237685302021e02,
                                           1.13864154151050156e02, 3.16112374387056560e00,
                                           1.85777706184603153e-1};
constexpr std::array<double, 5> kErfBottom = {2.84423683343917062e03, 1.28261652607737228e03,
                                              2.44024637934444173e02, 2.36012909523441209e01, 1};
// exp(y^2) erfc(y) for 0.46875 <= y <= 4
constexpr std::array<double, 9> kErfcTop = {
    1.23033935479799725e03, 2.05107837782607147e03, 1.71204761263407058e03,
    8.81952221241769090e02, 2.98635138197400131e02, 6.61191906371416295e01,
    8.88314979438837594e00, 5.64188496988670089e-1, 2.15311535474403846e-8};
constexpr std::array<double, 9> kErfcBottom = {
    1.23033935480374942e03, 3.43936767414372164e03, 4.36261909014324716e03,
    3.29079923573345963e03, 1.62138957456669019e03, 5.37181101862009858e02,
    1.17693950891312499e02, 1.57449261107098347e01, 1};
// y^2 (1 / sqrt(pi) - y exp(y^2) erfc(y)) for y > 4, as a function of 1 / y^2
constexpr std::array<double, 6> kFarTop = {6.58749161529837803e-4, 1.60837851487422766e-2,
                                           1.25781726111229246e-1, 3.60344899949804439e-1,
                                           3.05326634961232344e-1, 1.63153871373020978e-2};
constexpr std::array<double, 6> kFarBottom = {2.33520497626869185e-3, 6.05183413124413191e-2,
                                              5.27905102951428412e-1, 1.87295284992346725e00,
                                              2.56852019228982242e00, 1};

// Around p = 1/2, as a function of 0.425^2 - (p - 1/2)^2
constexpr std::array<double, 8> kMiddleTop = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                              1.9715909503065514427e3, 1.3731693765509461125e4,
                                              4.5921953931549871457e4, 6.7265770927008700853e4,
                                              3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr std::array<double, 8> kMiddleBottom = {1.0,
                                                 4.2313330701600911252e1,
                                                 6.8718700749205790830e2,
                                                 5.3941960214247511077e3,
                                                 2.1213794301586595867e4,
                                                 3.9307895800092710610e4,
                                                 2.8729085735721942674e4,
                                                 5.2264952788528545610e3};
// As a function of r - 1.6, where r = sqrt(-ln p) <= 5
constexpr std::array<double, 8> kTailTop = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                            5.76949722146069140550e0,  3.64784832476320460504e0,
                                            1.27045825245236838258e0,  2.41780725177450611770e-1,
                                            2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr std::array<double, 8> kTailBottom = {1.0,
                                               2.05319162663775882187e0,
                                               1.67638483018380384940e0,
                                               6.89767334985100004550e-1,
                                               1.48103976427480074590e-1,
                                               1.51986665636164571966e-2,
                                               5.47593808499534494600e-4,
                                               1.05075007164441684324e-9};
// As a function of r - 5, where r > 5
constexpr std::array<double, 8> kEndTop = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                           1.78482653991729133580e0,  2.96560571828504891230e-1,
                                           2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                           2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr std::array<double, 8> kEndBottom = {1.0,
                                              5.99832206555887937690e-1,
                                              1.36929880922735805310e-1,
                                              1.48753612908506148525e-2,
                                              7.86869131145613259100e-4,
                                              1.84631831751005468180e-5,
                                              1.42151175831644588870e-7,
                                              2.04426310338993978564e-15};

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio, odd

// The output function of SplitMix64.
std::uint64_t stir(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

// x = 2^e m with sqrt(1/2) < m <= sqrt(2). With f = m - 1 (exact) and s = f / (2 + f):
// ln m = 2 atanh(s) = f - s (f - (2/3 s^2 + 2/5 s^4 + …)).
double log_of(double x) {
  if (x == 0) return -kInfinite;
  if (!(x > 0)) return kNan;
  if (x == kInfinite) return x;
  int exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    exponent = -54;
  }
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffff) | 0x3ff0000000000000);
  if (m > kRootOfTwo) {
    m /= 2;
    ++exponent;
  }
  const double f = m - 1;
  const double s = f / (2 + f);
  const double square = s * s;
  const double e = exponent;
  const double low = s * (f - square * polynomial(kAtanh, square)) - e * kLn2Low;
  return e * kLn2High + (f - low);
}

// x = k ln 2 + r with |r| <= ln 2 / 2, and exp(r) = 1 + r + r^2 / 2! + …
double exp_of(double x) {
  if (x != x) return x;
  if (x < -745.2) return 0;
  if (x > 709.79) return kInfinite;
  const int k = static_cast<int>(x * kInverseLn2 + (x < 0 ? -0.5 : 0.5));
  const double high = x - k * kLn2High;
  const double low = k * kLn2Low;
  const double r = high - low;
  const double one = 1 + (high - (low - r * r * polynomial(kExp, r)));
  // In two steps: 2^k alone may be out of range where the product is not.
  const int half = k / 2;
  return one * power_of_two(half) * power_of_two(k - half);
}

double root_of(double x) { return std::sqrt(x); }

// 1/2 erfc(-x / sqrt(2))
double normal_cdf(double x) {
  if (x != x) return x;
  const double distance = x < 0 ? -x : x;
  const double y = distance / kRootOfTwo;
  if (y <= 0.46875) {
    const double square = y * y;
    const double half_erf = y * (polynomial(kErfTop, square) / polynomial(kErfBottom, square)) / 2;
    return x < 0 ? 0.5 - half_erf : 0.5 + half_erf;
  }
  constexpr double kInverseRootOfPi = 0x1.20dd750429b6dp-1;
  double scaled = 0;  // exp(y^2) erfc(y)
  if (y <= 4) {
    scaled = polynomial(kErfcTop, y) / polynomial(kErfcBottom, y);
  } else {
    const double inverse = 1 / (y * y);
    const double rest = inverse * polynomial(kFarTop, inverse) / polynomial(kFarBottom, inverse);
    scaled = (kInverseRootOfPi - rest) / y;
  }
  const double tail = bell(distance) * scaled / 2;
  return x < 0 ? tail : 1 - tail;
}

double normal_quantile(double p) {
  if (!(p > 0)) return p == 0 ? -kInfinite : kNan;
  if (!(p < 1)) return p == 1 ? kInfinite : kNan;
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kMiddleTop, r) / polynomial(kMiddleBottom, r);
  }
  const double r = root_of(-log_of(q < 0 ? p : 1 - p));
  const double distance = r <= 5 ? polynomial(kTailTop, r - 1.6) / polynomial(kTailBottom, r - 1.6)
                                 : polynomial(kEndTop, r - 5) / polynomial(kEndBottom, r - 5);
  return q < 0 ? -distance : distance;
}

// Output n of the SplitMix64 generator whose state is a hash of the seed and the stream.
std::uint64_t mix(std::uint64_t seed, std::uint64_t stream, std::uint64_t n) {
  const std::uint64_t state = stir(stir(seed + kGolden) + kGolden * (stream + 1));
  return stir(state + kGolden * (n + 1));
}

double unit_of_bits(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace mete::core::sweep
