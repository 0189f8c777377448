// uniINF on Pareto losses, hand-vectorised: what the hardware allows.
//
// A vector lane is a seed; a thread plays VECTORS vectors of seeds from the first round to the last, their state in
// registers and first-level cache. Arithmetic is IEEE with fused multiply-adds; the bits and the algorithm are those
// of the package. Where a formula is rearranged the comment beside it says so.
//
//   g++ -O3 -march=native -std=gnu++17 -shared -fPIC -pthread -Wno-psabi uniinf.cpp -o uniinf.so

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <immintrin.h>
#include <thread>
#include <type_traits>
#include <vector>

#define INLINE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

namespace {

#ifdef __AVX512DQ__
constexpr int BYTES = 64;
#else
constexpr int BYTES = 32;
#endif
#ifndef VECTORS
#define VECTORS 2  // vectors played together: each hides the other's latencies
#endif

// ---- vectors -------------------------------------------------------------------------------------------------------

typedef uint32_t Word __attribute__((vector_size(BYTES)));
constexpr int WORD_LANES = BYTES / 4;

template <class T>
struct Types {
    using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    static constexpr int WIDTH = BYTES / sizeof(T);
    static constexpr int LANES = VECTORS * WIDTH;  // seeds played together
    static constexpr int MANTISSA = sizeof(T) == 4 ? 23 : 52;
    typedef T Float __attribute__((vector_size(BYTES)));
    typedef Integer Int __attribute__((vector_size(BYTES)));  // also what a comparison gives: -1 or 0
    typedef int32_t Half __attribute__((vector_size(WIDTH * 4)));
    typedef uint32_t UHalf __attribute__((vector_size(WIDTH * 4)));
};

template <class F> INLINE F min(F a, F b) { return a < b ? a : b; }
template <class F> INLINE F max(F a, F b) { return a > b ? a : b; }
template <class F> INLINE F abs(F a) { return max(a, -a); }

template <class F>
INLINE F sqrt(F a) {
    constexpr bool single = std::is_same_v<decltype(+a[0]), float>;
#ifdef __AVX512DQ__
    if constexpr (single) return (F)_mm512_sqrt_ps((__m512)a);
    else return (F)_mm512_sqrt_pd((__m512d)a);
#else
    if constexpr (single) return (F)_mm256_sqrt_ps((__m256)a);
    else return (F)_mm256_sqrt_pd((__m256d)a);
#endif
}

template <class T> using Float = typename Types<T>::Float;
template <class T> using Int = typename Types<T>::Int;

template <class T> INLINE Float<T> fill(double value) { return Float<T>{} + (T)value; }

// 32-bit words as numbers; `from_word` for any word, `from_bits` for words below 2^31.
template <class T>
INLINE Float<T> from_word(const uint32_t* words) {
    typename Types<T>::UHalf loaded;
    std::memcpy(&loaded, words, sizeof loaded);
    return __builtin_convertvector(loaded, Float<T>);
}

template <class T>
INLINE Float<T> from_bits(typename Types<T>::UHalf bits) {
    return __builtin_convertvector((typename Types<T>::Half)bits, Float<T>);
}

// ---- random bits ---------------------------------------------------------------------------------------------------

template <int R> INLINE Word rotate(Word x) { return (x << R) | (x >> (32 - R)); }

// Threefry-2x32, 20 rounds.
INLINE void threefry(Word k0, Word k1, Word& x0, Word& x1) {
    const Word schedule[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
    x0 += k0;
    x1 += k1;
    UNROLL for (int group = 0; group < 5; ++group) {
        if (group % 2 == 0) {
            x0 += x1; x1 = rotate<13>(x1) ^ x0;
            x0 += x1; x1 = rotate<15>(x1) ^ x0;
            x0 += x1; x1 = rotate<26>(x1) ^ x0;
            x0 += x1; x1 = rotate<6>(x1) ^ x0;
        } else {
            x0 += x1; x1 = rotate<17>(x1) ^ x0;
            x0 += x1; x1 = rotate<29>(x1) ^ x0;
            x0 += x1; x1 = rotate<16>(x1) ^ x0;
            x0 += x1; x1 = rotate<24>(x1) ^ x0;
        }
        x0 += schedule[(group + 1) % 3];
        x1 += schedule[(group + 2) % 3] + (uint32_t)(group + 1);
    }
}

constexpr uint32_t COUNTERS[3] = {1u << 24, 2u << 24, (2u << 24) + 1};  // the arm's pair, the loss's two

// The words of one round for all seeds played together, pair by pair.
template <class T>
struct Bits {
    static constexpr int BLOCKS = (Types<T>::LANES + WORD_LANES - 1) / WORD_LANES;
    Word k0[BLOCKS], k1[BLOCKS];
    alignas(64) uint32_t words[6][BLOCKS * WORD_LANES];

    Bits(uint32_t seed_hi, uint32_t seed_lo, int64_t first_seed) {
        for (int block = 0; block < BLOCKS; ++block) {
            Word x0 = {}, x1 = {};
            for (int lane = 0; lane < WORD_LANES; ++lane) x1[lane] = (uint32_t)(first_seed + block * WORD_LANES + lane);
            threefry(Word{} + seed_hi, Word{} + seed_lo, x0, x1);
            k0[block] = x0;
            k1[block] = x1;
        }
    }

    INLINE void draw(uint32_t t, int pair) {
        UNROLL for (int block = 0; block < BLOCKS; ++block) {
            Word x0 = Word{} + t, x1 = Word{} + COUNTERS[pair];
            threefry(k0[block], k1[block], x0, x1);
            std::memcpy(&words[2 * pair][block * WORD_LANES], &x0, sizeof x0);
            std::memcpy(&words[2 * pair + 1][block * WORD_LANES], &x1, sizeof x1);
        }
    }
};

// ---- powers --------------------------------------------------------------------------------------------------------

// log2 of positive normal numbers: exponent + 2/ln 2 atanh(f / (2 + f)), mantissa 1 + f in [sqrt(1/2), sqrt(2)).
template <class T>
INLINE Float<T> log2(Float<T> x) {
    using I = typename Types<T>::Integer;
    constexpr int M = Types<T>::MANTISSA, TERMS = sizeof(T) == 4 ? 5 : 10;
    constexpr I ONE = sizeof(T) == 4 ? (I)0x3F800000 : (I)0x3FF0000000000000;
    constexpr I ROOT_HALF = sizeof(T) == 4 ? (I)0x3F3504F3 : (I)0x3FE6A09E667F3BCD;
    // An integer below 2^M in the mantissa of 2^M is that integer, as a float.
    constexpr I TWO_TO_M = (ONE + ((I)M << M));

    const Int<T> shifted = (Int<T>)x + (ONE - ROOT_HALF);
    const Float<T> exponent = (Float<T>)((shifted >> M) | TWO_TO_M) - (T)(((I)1 << M) + (ONE >> M));
    const Float<T> mantissa = (Float<T>)((shifted & (((I)1 << M) - 1)) + ROOT_HALF);
    const Float<T> s = (mantissa - (T)1) / (mantissa + (T)1), s2 = s * s;
    constexpr double SCALE = 2.885390081777926814719849362003784;  // 2 / ln 2
    Float<T> series = fill<T>(SCALE / (2 * TERMS - 1));
    UNROLL for (int k = TERMS - 2; k >= 0; --k) series = series * s2 + (T)(SCALE / (2 * k + 1));
    return series * s + exponent;
}

// 2^x for |x| < 120: an integer power by the exponent's bits, the rest by the series of exp.
template <class T>
INLINE Float<T> exp2(Float<T> x) {
    using I = typename Types<T>::Integer;
    constexpr int M = Types<T>::MANTISSA, TERMS = sizeof(T) == 4 ? 8 : 14;
    constexpr T ROUND = (T)1.5 * (T)((I)1 << M);  // adding it rounds to an integer, found in the low bits
    constexpr double LN2 = 0.693147180559945309417232121458177;

    const Float<T> rounded = x + ROUND;
    const Float<T> r = x - (rounded - ROUND);
    double coefficients[TERMS] = {1};
    UNROLL for (int k = 1; k < TERMS; ++k) coefficients[k] = coefficients[k - 1] * LN2 / k;
    Float<T> series = fill<T>(coefficients[TERMS - 1]);
    UNROLL for (int k = TERMS - 2; k >= 0; --k) series = series * r + (T)coefficients[k];
    return (Float<T>)((Int<T>)series + ((Int<T>)rounded << M));
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

int num_steps(int num_arms, bool is_double) {
    return (is_double ? 4 : 3) + (int)std::ceil(std::log10(std::max(num_arms, 2) / 2.0) - 1e-9);
}

// The state of one vector of seeds, and a round of its play.
template <class T, int K>
struct Player {
    using F = Float<T>;
    using I = Int<T>;
    static constexpr int WIDTH = Types<T>::WIDTH;

    const int num_arms;
    Arms<F, K> L, L_lost;  // sums of the loss estimates, their minimum 0, and what rounding took from them
    F S, S_lost;
    Arms<I, K> pulls;
    F loss{}, loss_lost{};
    I failed{};

    Arms<F, K> u, pair_sum, pair_product, x;  // of one round
    F y;

    Player(int num_arms, double initial_scale)
        : num_arms(num_arms), L(num_arms), L_lost(num_arms), S(fill<T>(initial_scale)), S_lost{}, pulls(num_arms),
          u(num_arms), pair_sum(num_arms / 2), pair_product(num_arms / 2), x(num_arms) {}

    INLINE int arms() const { return K ? K : num_arms; }

    // Arms are taken in pairs: 1/a + 1/b = (a + b) / (a b) and 1/a^2 + 1/b^2 = (1/a + 1/b)^2 - 2 / (a b) need one
    // division. With a = u_0 + y and b = u_1 + y, a + b and a b are polynomials in y. (No overflow while u < 1e19.)
    INLINE void begin_solve() {
        const F inverse = (T)1 / S;
        UNROLL for (int i = 0; i < arms(); ++i) u[i] = L[i] * inverse;
        UNROLL for (int p = 0; p < arms() / 2; ++p) {
            pair_sum[p] = u[2 * p] + u[2 * p + 1];
            pair_product[p] = u[2 * p] * u[2 * p + 1];
        }
        y = fill<T>(1);
    }

    // Newton's step for 1/phi(y) = 1, phi(y) = sum_i 1/(u_i + y).
    INLINE void newton_step() {
        F phi[2] = {}, squares[2] = {}, products[2] = {};
        UNROLL for (int p = 0; p < arms() / 2; ++p) {
            const F half = y + pair_sum[p];
            const F inverse = (T)1 / (y * half + pair_product[p]);
            const F both = (half + y) * inverse;
            phi[p % 2] += both;
            squares[p % 2] += both * both;
            products[p % 2] += inverse;
        }
        if (arms() % 2) {
            const F one = (T)1 / (u[arms() - 1] + y);
            phi[0] += one;
            squares[0] += one * one;
        }
        const F sum = phi[0] + phi[1];
        const F slope = (squares[0] + squares[1]) - (T)2 * (products[0] + products[1]);
        y += sum * (sum - (T)1) / slope;
    }

    // x = 1/(u + y); u becomes u + y.
    INLINE void end_solve() {
        UNROLL for (int i = 0; i < arms(); ++i) u[i] += y;
        UNROLL for (int p = 0; p < arms() / 2; ++p) {
            const F inverse = (T)1 / (u[2 * p] * u[2 * p + 1]);
            x[2 * p] = u[2 * p + 1] * inverse;
            x[2 * p + 1] = u[2 * p] * inverse;
        }
        if (arms() % 2) x[arms() - 1] = (T)1 / u[arms() - 1];
    }

    // The likeliest arm, the first whose L is 0, is left out of the prefix sums and takes the remainder.
    INLINE I draw(const uint32_t* w0, const uint32_t* w1) {
        typename Types<T>::UHalf first, second;
        std::memcpy(&first, w0, sizeof first);
        std::memcpy(&second, w1, sizeof second);
        const F high = from_bits<T>(first >> 8) * (T)0x1p-24;
        const F low = from_bits<T>(((first & 0xFFu) << 16) | (second >> 16)) * (T)0x1p-48;

        I likeliest = {};
        UNROLL for (int i = arms() - 1; i >= 0; --i) likeliest = L[i] == (T)0 ? I{} + i : likeliest;

        F total = likeliest == 0 ? F{} : x[0], lost = {};
        I arm = low >= total - high ? I{} + 1 : I{};
        UNROLL for (int i = 1; i < arms(); ++i) {
            const F other = likeliest == i ? F{} : x[i];
            const F large = max(total, other), small = min(total, other);
            total = large + small;
            lost += small - (total - large);
            arm = low - lost >= total - high ? arm + 1 : arm;
        }
        return arm == arms() ? likeliest : arm;
    }

    INLINE void update(uint32_t t, I arm, F drawn_loss, T growth_rate) {
        F rest[2] = {}, inverse_x = {};  // the sum of the other x, and 1/x[arm]
        UNROLL for (int i = 0; i < arms(); ++i) {
            rest[i % 2] = arm == i ? rest[i % 2] : rest[i % 2] + x[i];
            inverse_x = arm == i ? u[i] : inverse_x;
            pulls[i] = arm == i ? pulls[i] + 1 : pulls[i];
        }
        const F x_rest = max(rest[0] + rest[1], fill<T>(0x1p-100));

        // |l| < C = S / (4 x_rest) and clip * x_rest, both times x_rest: no division.
        const F scaled = abs(drawn_loss) * x_rest, limit = S * (T)0.25;
        const F estimate = scaled < limit ? drawn_loss * inverse_x : F{};
        const F clipped = min(scaled, limit);
        const F square = clipped * clipped * growth_rate;
        const F S_term = S_lost + square / (S + sqrt(S * S + square));
        const F S_next = S + S_term;
        S_lost = S_term - (S_next - S);
        S = S_next;

        F least = {};
        UNROLL for (int i = 0; i < arms(); ++i) {
            const F term = arm == i ? L_lost[i] + estimate : L_lost[i];
            const F next = L[i] + term;
            L_lost[i] = term - (next - L[i]);
            L[i] = next;
            least = i == 0 ? next : min(least, next);
        }
        F lost_sum[2] = {S_lost, {}};
        UNROLL for (int i = 0; i < arms(); ++i) {
            const F shifted = L[i] - least;
            L_lost[i] += -least - (shifted - L[i]);
            L[i] = shifted;
            lost_sum[i % 2] += L_lost[i];
        }

        // What rounding took from L or S is not finite wherever L or S is not: it stands for both.
        const F all_lost = lost_sum[0] + lost_sum[1];
        const I broken = failed == 0 ? I{} + (typename Types<T>::Integer)t : failed;
        failed = all_lost - all_lost == (T)0 ? failed : broken;

        const F sum = loss + drawn_loss, part = sum - loss;
        loss_lost += (loss - (sum - part)) + (drawn_loss - part);
        loss = sum;
    }
};

template <class T, int K>
void play_group(const Game& game, int64_t first_seed) {
    using F = Float<T>;
    constexpr int WIDTH = Types<T>::WIDTH;
    const int num_arms = K ? K : game.num_arms;
    const int steps = num_steps(num_arms, sizeof(T) == 8);
    const T exponent = (T)(-1 / game.tail_index);
    const T growth_rate = (T)(1 / (num_arms * std::log((double)game.horizon)));
    std::vector<T> scale(std::max(num_arms, 2 * WIDTH));  // means[i] (a - 1)/a
    for (int i = 0; i < num_arms; ++i) scale[i] = (T)(game.means[i] * (game.tail_index - 1) / game.tail_index);
    F table[2];
    std::memcpy(table, scale.data(), sizeof table);

    Bits<T> bits(game.seed_hi, game.seed_lo, first_seed);
    std::vector<Player<T, K>> players(VECTORS, Player<T, K>(num_arms, game.initial_scale));
    const auto words = [&](int word, int v) { return &bits.words[word][v * WIDTH]; };

    for (uint32_t t = 1; t <= (uint32_t)game.horizon; ++t) {
        UNROLL for (int v = 0; v < VECTORS; ++v) players[v].begin_solve();
        for (int step = 0; step < steps; ++step) {
            UNROLL for (int v = 0; v < VECTORS; ++v) players[v].newton_step();
            if (step < 3) bits.draw(t, step);  // here the divider is busy and the rest is not
        }
        F power[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; ++v) {
            const F tail = from_word<T>(words(4, v)) * (T)0x1p-96 + (T)0x1p-97;
            const F uniform =
                from_word<T>(words(2, v)) * (T)0x1p-32 + (from_word<T>(words(3, v)) * (T)0x1p-64 + tail);
            power[v] = exp2<T>(log2<T>(uniform) * exponent);
        }
        UNROLL for (int v = 0; v < VECTORS; ++v) players[v].end_solve();
        UNROLL for (int v = 0; v < VECTORS; ++v) {
            const Int<T> arm = players[v].draw(words(0, v), words(1, v));
            F factor = {};
            if constexpr (K > 0 && K <= 2 * WIDTH) factor = __builtin_shuffle(table[0], table[1], arm);
            else for (int i = 0; i < num_arms; ++i) factor = arm == i ? F{} + scale[i] : factor;
            players[v].update(t, arm, factor * power[v], growth_rate);
        }
    }

    const double best = *std::min_element(game.means, game.means + num_arms);
    const int count = (int)std::min<int64_t>(Types<T>::LANES, game.num_seeds - first_seed);
    for (int lane = 0; lane < count; ++lane) {
        const Player<T, K>& player = players[lane / WIDTH];
        const int j = lane % WIDTH;
        const int64_t n = first_seed + lane;
        const double total = player.loss[j];
        game.loss[n] = std::isfinite(total) ? total + (double)player.loss_lost[j] : total;
        game.failed[n] = (int32_t)player.failed[j];
        game.regret[n] = 0;
        for (int i = 0; i < num_arms; ++i) {
            const int64_t pulled = player.pulls[i][j];
            game.pulls[i * game.num_seeds + n] = pulled;
            game.regret[n] += (double)pulled * (game.means[i] - best);
        }
    }
}

template <class T>
void play(const Game& game, int num_threads) {
    constexpr int64_t LANES = Types<T>::LANES;
    const auto group = game.num_arms == 10 ? play_group<T, 10> : play_group<T, 0>;
    std::atomic<int64_t> next{0};
    const auto work = [&] {
        for (int64_t first; (first = LANES * next++) < game.num_seeds;) group(game, first);
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
