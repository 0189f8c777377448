// uniINF on Pareto losses, hand-vectorised: what the hardware allows.
//
// A lane is a seed. A thread takes a block of seeds, a few registers wide, and plays it from the first round to the
// last with its state in first-level cache. Arithmetic is IEEE with fused multiply-adds; bits and algorithm are the
// package's. Where a formula is rearranged, the comment beside it says so.
//
//   g++ -O3 -march=native -std=gnu++17 -shared -fPIC -pthread uniinf.cpp -o uniinf.so

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <immintrin.h>
#include <thread>
#include <type_traits>
#include <vector>

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors by value, in functions that are always inlined

#define INLINE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")
#define ROLL _Pragma("GCC unroll 1")

namespace {

#ifdef __AVX512DQ__
constexpr int BYTES = 64;  // of a register
#else
constexpr int BYTES = 32;
#endif
#ifndef HALLEY
#define HALLEY 0
#endif
constexpr int PLAYERS = 2;  // registers of seeds played in turn: each fills the other's latencies

// ---- vectors -------------------------------------------------------------------------------------------------------

template <class T> using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

template <class E, int N> struct Vector { typedef E type __attribute__((vector_size(N * sizeof(E)))); };

// The types of a player: one register of floats, integers as wide as they are, and as many random words. A comparison
// of floats or integers gives integers, -1 for true and 0 for false.
template <class T>
struct Types {
    static constexpr int LANES = BYTES / sizeof(T);
    using F = typename Vector<T, LANES>::type;
    using I = typename Vector<Integer<T>, LANES>::type;
    using W = typename Vector<uint32_t, LANES>::type;
    using SignedW = typename Vector<int32_t, LANES>::type;
};

template <class T> INLINE typename Types<T>::F all(double value) { return (T)value - typename Types<T>::F{}; }

template <class F> INLINE F min(F a, F b) { return a < b ? a : b; }
template <class F> INLINE F max(F a, F b) { return a > b ? a : b; }

template <class I>
INLINE I increment_where(I mask, I count) {
#ifdef __AVX512DQ__
    return mask ? count + 1 : count;
#else
    return count - mask;
#endif
}

template <class F>
INLINE F sqrt(F a) {
    constexpr bool is_float = std::is_same_v<F, Types<float>::F>;
#ifdef __AVX512DQ__
    if constexpr (is_float) return _mm512_sqrt_ps(a);
    else return _mm512_sqrt_pd(a);
#else
    if constexpr (is_float) return _mm256_sqrt_ps(a);
    else return _mm256_sqrt_pd(a);
#endif
}

// A sum in two halves: half the latency.
template <class F>
struct Sum {
    F part[2] = {};
    INLINE void add(int i, F term) { part[i % 2] = i < 2 ? term : part[i % 2] + term; }
    template <class I>
    INLINE void add_where(int i, I mask, F term) {
        part[i % 2] = i < 2 ? (mask ? term : F{}) : (mask ? part[i % 2] + term : part[i % 2]);
    }
    INLINE F total() const { return part[0] + part[1]; }
};

// ---- random bits ---------------------------------------------------------------------------------------------------

template <int R, class W>
INLINE void mix(W& x0, W& x1) {
    x0 += x1;
    x1 = ((x1 << R) | (x1 >> (32 - R))) ^ x0;
}

// Threefry-2x32, 20 rounds.
template <class W>
struct Threefry {
    W first[6], second[6];  // what is added to the two words before each group of four rounds, and at the end

    INLINE Threefry(W k0, W k1) {
        const W schedule[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
        for (uint32_t group = 0; group < 6; ++group) {
            first[group] = schedule[group % 3];
            second[group] = schedule[(group + 1) % 3] + group;
        }
    }

    INLINE void operator()(W& x0, W& x1) const {
        x0 += first[0];
        x1 += second[0];
        UNROLL for (int group = 0; group < 5; ++group) {
            if (group % 2 == 0) mix<13>(x0, x1), mix<15>(x0, x1), mix<26>(x0, x1), mix<6>(x0, x1);
            else mix<17>(x0, x1), mix<29>(x0, x1), mix<16>(x0, x1), mix<24>(x0, x1);
            x0 += first[group + 1];
            x1 += second[group + 1];
        }
    }
};

// ---- powers --------------------------------------------------------------------------------------------------------

// log2 of positive normal numbers: exponent + 2/ln 2 atanh((m - 1) / (m + 1)), mantissa m in [sqrt(1/2), sqrt(2)).
template <class T>
INLINE typename Types<T>::F log2(typename Types<T>::F x) {
    using F = typename Types<T>::F;
    using I = typename Types<T>::I;
    using N = Integer<T>;
    constexpr int BITS = sizeof(T) == 4 ? 23 : 52, TERMS = sizeof(T) == 4 ? 5 : 10;
    constexpr N ONE = sizeof(T) == 4 ? (N)0x3F800000 : (N)0x3FF0000000000000;
    constexpr N ROOT_HALF = sizeof(T) == 4 ? (N)0x3F3504F3 : (N)0x3FE6A09E667F3BCD;
    constexpr N POWER = ONE + ((N)BITS << BITS);  // 2^BITS: an integer in its mantissa adds its own value
    constexpr double SCALE = 2.885390081777926814719849362003784;  // 2 / ln 2

    const I shifted = (I)x + (ONE - ROOT_HALF);
    const F exponent = (F)((shifted >> BITS) | POWER) - (T)(((N)1 << BITS) + (ONE >> BITS));
    const F mantissa = (F)((shifted & (((N)1 << BITS) - 1)) + ROOT_HALF);
    const F s = (mantissa - (T)1) / (mantissa + (T)1), s2 = s * s;
    F series = all<T>(SCALE / (2 * TERMS - 1));
    UNROLL for (int k = TERMS - 2; k >= 0; --k) series = series * s2 + (T)(SCALE / (2 * k + 1));
    return series * s + exponent;
}

// 2^x for |x| < 120: an integer power by the exponent's bits, the rest by the series of exp.
template <class T>
INLINE typename Types<T>::F exp2(typename Types<T>::F x) {
    using F = typename Types<T>::F;
    using I = typename Types<T>::I;
    constexpr int BITS = sizeof(T) == 4 ? 23 : 52, TERMS = sizeof(T) == 4 ? 8 : 14;
    constexpr T ROUND = (T)1.5 * (T)((Integer<T>)1 << BITS);  // adding it rounds to an integer, found in the low bits
    constexpr double LN2 = 0.693147180559945309417232121458177;

    const F rounded = x + ROUND;
    const F r = x - (rounded - ROUND);
    std::array<double, TERMS> coefficients = {1};
    UNROLL for (int k = 1; k < TERMS; ++k) coefficients[k] = coefficients[k - 1] * LN2 / k;
    F series = all<T>(coefficients[TERMS - 1]);
    UNROLL for (int k = TERMS - 2; k >= 0; --k) series = series * r + (T)coefficients[k];
    return (F)((I)series + ((I)rounded << BITS));
}

// ---- the game ------------------------------------------------------------------------------------------------------

struct Game {
    int num_arms;
    int64_t num_seeds, horizon;
    uint32_t seed_hi, seed_lo;
    const double* means;
    double tail_index, initial_scale;
    double *regret, *loss;
    int64_t* pulls;
    int32_t* failed;
};

// One value per arm; K = 0 stands for a number of arms known at run time only.
template <class F, int K>
struct Arms : std::array<F, K> {
    explicit Arms(int) : std::array<F, K>{} {}
};
template <class F>
struct Arms<F, 0> : std::vector<F> {
    explicit Arms(int num_arms) : std::vector<F>(num_arms) {}
};

// One register of seeds. The parts of a round are its methods; play_block calls them.
template <class T, int K>
struct Player {
    using F = typename Types<T>::F;
    using I = typename Types<T>::I;
    using W = typename Types<T>::W;
    static constexpr int LANES = Types<T>::LANES;

    Arms<F, K> L, L_lost;  // sums of the loss estimates, their minimum 0, and what rounding took from them
    Arms<I, K> pulls;
    F S, S_lost{}, loss{}, loss_lost{};
    I failed{};

    // Of one round:
    Arms<F, K> pair_sum, pair_product, x;
    F Y, power;
    I arm;
    W words[4];

    Threefry<W> cipher;
    const int num_arms;
    const T exponent, growth_rate;  // -1/a and 1/(K ln T)
    std::vector<T> factor;          // means (a - 1)/a
    F table[2] = {};                // the first of them, to be looked up by arm

    Player(const Game& game, int64_t first_seed)
        : L(game.num_arms), L_lost(game.num_arms), pulls(game.num_arms), S(all<T>(game.initial_scale)),
          pair_sum(game.num_arms), pair_product(game.num_arms), x(game.num_arms), cipher(W{}, W{}),
          num_arms(game.num_arms), exponent((T)(-1 / game.tail_index)),
          growth_rate((T)(1 / (game.num_arms * std::log((double)game.horizon)))),
          factor(game.num_arms) {
        for (int i = 0; i < num_arms; ++i) factor[i] = (T)(game.means[i] * (game.tail_index - 1) / game.tail_index);
        for (int i = 0; i < std::min(num_arms, 2 * LANES); ++i) table[i / LANES][i % LANES] = factor[i];
        W k0 = {}, k1;
        for (int lane = 0; lane < LANES; ++lane) k1[lane] = (uint32_t)(first_seed + lane);
        Threefry<W>(W{} + game.seed_hi, W{} + game.seed_lo)(k0, k1);
        cipher = Threefry<W>(k0, k1);
    }

    INLINE int arms() const { return K ? K : num_arms; }

    INLINE void draw_words(uint32_t t, int pair) {
        constexpr uint32_t COUNTERS[2] = {1u << 24, 2u << 24};  // the arm's pair, the loss's
        W x0 = W{} + t, x1 = W{} + COUNTERS[pair];
        cipher(x0, x1);
        words[2 * pair] = x0;
        words[2 * pair + 1] = x1;
    }

    // x_i = S/(L_i + Y), Y = S y: as 1/(u_i + y), and no L is divided by S. Arms are taken in pairs, for one division:
    // 1/a + 1/b = (a + b) / ab and 1/a^2 + 1/b^2 = (1/a + 1/b)^2 - 2/ab. With a = L_0 + Y and b = L_1 + Y, a + b and
    // ab are polynomials in Y. (In float32 ab overflows where both L pass 1e19.)
    INLINE void begin_solve() {
        const int n = arms();
        UNROLL for (int p = 0; p < n / 2; ++p) {
            pair_sum[p] = L[2 * p] + L[2 * p + 1];
            pair_product[p] = L[2 * p] * L[2 * p + 1];
        }
        Y = HALLEY ? S * (T)std::pow((double)n, n <= 64 ? 0.5 : 0.38) : S;
    }

    // Newton's step for 1/phi = 1, phi = sum_i S/(L_i + Y); with HALLEY the package's own solver, which starts in the
    // middle and corrects for curvature: 1/a^3 + 1/b^3 = (1/a + 1/b) ((1/a + 1/b)^2 - 3/ab).
    INLINE void solver_step() {
        const int n = arms();
        Sum<F> inverses, squares, products, cubes;
        UNROLL for (int p = 0; p < n / 2; ++p) {
            const F half = Y + pair_sum[p];
            const F inverse = (T)1 / (Y * half + pair_product[p]);
            const F both = (half + Y) * inverse;
            const F square = both * both;
            inverses.add(p, both);
            squares.add(p, square);
            products.add(p, inverse);
            if (HALLEY) cubes.add(p, both * (square - (T)3 * inverse));
        }
        if (n % 2) {
            const F inverse = (T)1 / (L[n - 1] + Y);
            inverses.add(n / 2, inverse);
            squares.add(n / 2, inverse * inverse);
            if (HALLEY) cubes.add(n / 2, inverse * inverse * inverse);
        }
        const F sum = inverses.total(), excess = sum * (S * sum - (T)1);
        const F slope = squares.total() - (T)2 * products.total();
        if (HALLEY) {
            const F slope2 = slope * slope;
            Y = max(Y + excess * slope / max(S * sum * slope2 - excess * cubes.total(), (T)0.35 * slope2), S);
        } else {
            Y += excess / slope;
        }
    }

    INLINE void end_solve() {
        const int n = arms();
        UNROLL for (int p = 0; p < n / 2; ++p) {
            const F a = L[2 * p] + Y, b = L[2 * p + 1] + Y;
            const F inverse = S / (a * b);
            x[2 * p] = b * inverse;
            x[2 * p + 1] = a * inverse;
        }
        if (n % 2) x[n - 1] = S / (L[n - 1] + Y);
    }

    // U^(-1/a). The 16 bits that drawing the arm leaves over lengthen U.
    INLINE void draw_power() {
        const F tail = __builtin_convertvector(words[1] << 16, F) * (T)0x1p-96 + (T)0x1p-97;
        const F low = __builtin_convertvector(words[3], F) * (T)0x1p-64 + tail;
        power = exp2<T>(log2<T>(__builtin_convertvector(words[2], F) * (T)0x1p-32 + low) * exponent);
    }

    // The likeliest arm, the first whose L is 0, is left out of the prefix sums and takes the remainder. No arm, -1, is
    // drawn from an x that has a negative entry or whose sum is off by more than 1e-3; a NaN is in the sum too.
    INLINE void draw_arm() {
        using SignedW = typename Types<T>::SignedW;
        const int n = arms();
        const F high = __builtin_convertvector((SignedW)(words[0] >> 8), F) * (T)0x1p-24;
        const W low_bits = ((words[0] & 0xFFu) << 16) | (words[1] >> 16);
        const F low = __builtin_convertvector((SignedW)low_bits, F) * (T)0x1p-48;

        I likeliest = {};
        UNROLL for (int i = n - 1; i >= 0; --i) likeliest = L[i] == (T)0 ? I{} + i : likeliest;

        F total = {}, lost = {}, least[2] = {x[0], x[0]};
        Sum<F> whole;
        I passed = {};
        UNROLL for (int i = 0; i < n; ++i) {
            whole.add(i, x[i]);
            least[i % 2] = min(least[i % 2], x[i]);
            const F other = likeliest == i ? F{} : x[i];
            if (i == 0) {
                total = other;
            } else {
                const F large = max(total, other), small = min(total, other);
                total = large + small;
                const F error = small - (total - large);  // the two-sum's, in fewer operations
                lost = i == 1 ? error : lost + error;
            }
            passed = increment_where(low - lost >= total - high, passed);  // (high - total) + (low - lost) >= 0
        }
        const F excess = whole.total() - (T)1;
        const I is_law = (max(excess, -excess) <= all<T>(1e-3)) & (min(least[0], least[1]) >= F{});
        arm = is_law ? (passed == n ? likeliest : passed) : I{} - 1;
    }

    INLINE F drawn_loss() const {
        if constexpr (0 < K && K <= 2 * LANES) {
            return __builtin_shuffle(table[0], table[1], arm) * power;
        } else {
            F value = {};
            for (int i = 0; i < arms(); ++i) value = arm == i ? all<T>(factor[i]) : value;
            return value * power;
        }
    }

    INLINE void update(uint32_t t) {
        const int n = arms();
        const F drawn = arm < 0 ? all<T>(NAN) : drawn_loss();  // without an arm S turns NaN, which marks the game
        Sum<F> others;
        F x_arm = {};
        UNROLL for (int i = 0; i < n; ++i) {
            others.add_where(i, arm != i, x[i]);
            x_arm = arm == i ? x[i] : x_arm;
            pulls[i] = increment_where(arm == i, pulls[i]);
        }
        const F x_rest = max(others.total(), all<T>(0x1p-100));

        // |l| < C = S / (4 x_rest) and the clipped loss, both times x_rest: no division.
        const F scaled = max(drawn, -drawn) * x_rest, limit = S * (T)0.25;
        const F estimate = scaled < limit ? drawn / x_arm : F{};
        const F clipped = min(limit, scaled);  // in this order NaN stays NaN
        const F square = clipped * clipped * growth_rate;
        const F S_term = S_lost + square / (S + sqrt(S * S + square));
        const F S_next = S + S_term;
        S_lost = S_term - (S_next - S);
        S = S_next;

        F least[2] = {all<T>(INFINITY), all<T>(INFINITY)};
        UNROLL for (int i = 0; i < n; ++i) {
            const F term = arm == i ? L_lost[i] + estimate : L_lost[i];
            const F next = L[i] + term;
            L_lost[i] = term - (next - L[i]);
            L[i] = next;
            least[i % 2] = i < 2 ? next : min(least[i % 2], next);
        }
        const F shift = -min(least[0], least[1]);
        Sum<F> check;
        UNROLL for (int i = 0; i < n; ++i) {
            const F shifted = L[i] + shift;
            L_lost[i] += shift - (shifted - L[i]);
            L[i] = shifted;
            check.add(i, L_lost[i]);
        }

        // What rounding took from L or S is not finite wherever L or S is not: it stands for both.
        const F finite = check.total() + S_lost;
        const I failed_by_now = failed == 0 ? I{} + (Integer<T>)t : failed;
        failed = finite - finite == (T)0 ? failed : failed_by_now;

        const F sum = loss + drawn, part = sum - loss;
        loss_lost += (loss - (sum - part)) + (drawn - part);
        loss = sum;
    }

    void report(const Game& game, int64_t first_seed) const {
        const double best = *std::min_element(game.means, game.means + num_arms);
        const int count = (int)std::min<int64_t>(LANES, game.num_seeds - first_seed);
        for (int lane = 0; lane < count; ++lane) {
            const int64_t n = first_seed + lane;
            const double total = loss[lane];
            game.loss[n] = std::isfinite(total) ? total + (double)loss_lost[lane] : total;
            game.failed[n] = (int32_t)failed[lane];
            game.regret[n] = 0;
            int64_t rounds = 0;  // with an arm
            for (int i = 0; i < num_arms; ++i) {
                game.pulls[i * game.num_seeds + n] = pulls[i][lane];
                game.regret[n] += (double)pulls[i][lane] * (game.means[i] - best);
                rounds += pulls[i][lane];
            }
            if (rounds < game.horizon) game.regret[n] = NAN;
        }
    }
};

// GCC would split a loop over players into one loop per part, and lose the overlap.
INLINE void keep_together() { asm volatile(""); }

template <class T, int K>
void play_block(const Game& game, int64_t first_seed) {
    using P = Player<T, K>;
    const int num_arms = K ? K : game.num_arms;
    const int decades = (int)std::ceil(std::log10(std::max(num_arms, 2) / 2.0) - 1e-9);
    const bool wide = sizeof(T) == 8;
    const int steps = HALLEY ? (wide ? 3 : 2) + (num_arms > (wide ? 16 : 10)) + (num_arms > 1000) + (num_arms > 100000)
                             : (wide ? 4 : 3) + decades;

    std::vector<P> players;
    players.reserve(PLAYERS);
    for (int p = 0; p < PLAYERS; ++p) players.emplace_back(game, first_seed + p * P::LANES);

    for (uint32_t t = 1; t <= (uint32_t)game.horizon; ++t) {
        ROLL for (P& player : players) player.begin_solve();
        for (int step = 0; step < 2; ++step) {
            ROLL for (P& player : players) {
                player.solver_step();
                player.draw_words(t, step);  // while the divider is busy
                keep_together();
            }
        }
        for (int step = 2; step < steps; ++step) {
            ROLL for (P& player : players) player.solver_step();
        }
        ROLL for (P& player : players) {
            player.end_solve();
            player.draw_power();
            keep_together();
        }
        ROLL for (P& player : players) player.draw_arm();
        ROLL for (P& player : players) player.update(t);
    }
    for (int p = 0; p < PLAYERS; ++p) players[p].report(game, first_seed + p * P::LANES);
}

template <class T>
void play(const Game& game, int num_threads) {
    constexpr int64_t SEEDS = PLAYERS * Types<T>::LANES;
    const auto play_some = game.num_arms == 10 ? play_block<T, 10> : play_block<T, 0>;
    std::atomic<int64_t> next{0};
    const auto work = [&] {
        for (int64_t first; (first = SEEDS * next++) < game.num_seeds;) play_some(game, first);
    };
    std::vector<std::thread> threads;
    for (int i = 1; i < num_threads; ++i) threads.emplace_back(work);
    work();
    for (auto& thread : threads) thread.join();
}

}  // namespace

extern "C" void play_float32(int num_arms, int64_t num_seeds, int64_t horizon, int num_threads, uint32_t seed_hi,
                             uint32_t seed_lo, const double* means, double tail_index, double initial_scale,
                             double* regret, double* loss, int64_t* pulls, int32_t* failed) {
    play<float>({num_arms, num_seeds, horizon, seed_hi, seed_lo, means, tail_index, initial_scale, regret, loss, pulls,
                 failed}, num_threads);
}

extern "C" void play_float64(int num_arms, int64_t num_seeds, int64_t horizon, int num_threads, uint32_t seed_hi,
                             uint32_t seed_lo, const double* means, double tail_index, double initial_scale,
                             double* regret, double* loss, int64_t* pulls, int32_t* failed) {
    play<double>({num_arms, num_seeds, horizon, seed_hi, seed_lo, means, tail_index, initial_scale, regret, loss, pulls,
                  failed}, num_threads);
}
