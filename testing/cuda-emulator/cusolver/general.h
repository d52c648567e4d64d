// Eigenvalues and eigenvectors of general matrices: the QR algorithm in complex numbers, then back substitution.
#pragma once

#include "matrix.h"

// The rotation that makes (x, y) to (r, 0), of rows p and q from column `from` on; and the same of columns.
struct Turn {
  double c = 1;
  Wide s = 0;
  Turn(Wide x, Wide y) {
    const double r = std::hypot(std::abs(x), std::abs(y));
    if (r == 0) return;
    if (std::abs(x) == 0) {
      c = 0;
      s = 1;
      return;
    }
    c = std::abs(x) / r;
    s = x / std::abs(x) * std::conj(y) / r;
  }
  void rows(Matrix &a, int p, int q) const {
    for (int j = 0; j < a.cols; j++) {
      const Wide x = a.at(p, j), y = a.at(q, j);
      a.at(p, j) = c * x + s * y;
      a.at(q, j) = -std::conj(s) * x + c * y;
    }
  }
  void columns(Matrix &a, int p, int q) const {
    for (int i = 0; i < a.rows; i++) {
      const Wide x = a.at(i, p), y = a.at(i, q);
      a.at(i, p) = c * x + std::conj(s) * y;
      a.at(i, q) = -s * x + c * y;
    }
  }
};

// Wilkinson's shift: the eigenvalue of the last two rows that is nearer to the last element.
static Wide shift_of(const Matrix &t, int last) {
  const Wide a = t.at(last - 1, last - 1), b = t.at(last - 1, last), c = t.at(last, last - 1), d = t.at(last, last);
  const Wide half = (a - d) / 2.0, root = std::sqrt(half * half + b * c);
  const Wide below = std::abs(half + root) > std::abs(half - root) ? half + root : half - root;
  return below == 0.0 ? d : d - b * c / below;
}

// a = q t q^H with t triangular. False if it does not converge.
static bool schur(Matrix &t, Matrix &q) {
  const int n = t.cols;
  q = Matrix::identity(n);
  // Hessenberg's form, by rotations.
  for (int j = 0; j + 2 < n; j++)
    for (int i = n - 1; i > j + 1; i--) {
      const Turn turn(t.at(i - 1, j), t.at(i, j));
      turn.rows(t, i - 1, i);
      turn.columns(t, i - 1, i);
      turn.columns(q, i - 1, i);
      t.at(i, j) = 0;
    }
  for (int last = n - 1, steps = 0; last > 0; steps++) {
    if (steps > 100 * n) return false;
    int first = last;
    while (first > 0) {
      const double beside = std::abs(t.at(first, first)) + std::abs(t.at(first - 1, first - 1));
      if (std::abs(t.at(first, first - 1)) <= 1e-16 * (beside > 0 ? beside : 1e-300)) {
        t.at(first, first - 1) = 0;
        break;
      }
      first--;
    }
    if (first == last) {
      last--;
      continue;
    }
    const Wide shift = steps % 11 == 10 ? t.at(last, last) + std::abs(t.at(last, last - 1)) : shift_of(t, last);
    std::vector<Turn> turns;
    for (int i = 0; i < n; i++) t.at(i, i) -= shift;
    for (int i = first; i < last; i++) {
      turns.emplace_back(t.at(i, i), t.at(i + 1, i));
      turns.back().rows(t, i, i + 1);
    }
    for (int i = first; i < last; i++) {
      turns[i - first].columns(t, i, i + 1);
      turns[i - first].columns(q, i, i + 1);
    }
    for (int i = 0; i < n; i++) t.at(i, i) += shift;
    for (int j = 0; j < n; j++)
      for (int i = j + 2; i < n; i++) t.at(i, j) = 0;
  }
  return true;
}

// Values, and columns of norm 1 whose largest element is real. False if it does not converge.
static bool general_eigen(const Matrix &a, std::vector<Wide> &values, Matrix &vectors) {
  const int n = a.cols;
  Matrix t = a, q(n, n);
  if (!schur(t, q)) return false;
  double norm = 0;
  for (const Wide &x : a.data) norm = std::max(norm, std::abs(x));
  values.resize(n);
  for (int k = 0; k < n; k++) {
    values[k] = t.at(k, k);
    std::vector<Wide> x(n);
    x[k] = 1;
    for (int i = k - 1; i >= 0; i--) {
      Wide sum = 0;
      for (int j = i + 1; j <= k; j++) sum += t.at(i, j) * x[j];
      Wide below = t.at(k, k) - t.at(i, i);
      if (std::abs(below) < 1e-15 * norm) below = 1e-15 * (norm > 0 ? norm : 1);
      x[i] = sum / below;
    }
    double length = 0;
    Wide largest = 0;
    for (int i = 0; i < n; i++) {
      Wide sum = 0;
      for (int j = 0; j <= k; j++) sum += q.at(i, j) * x[j];
      vectors.at(i, k) = sum;
      length = std::hypot(length, std::abs(sum));
      if (std::abs(sum) > std::abs(largest)) largest = sum;
    }
    const Wide by = std::conj(largest) / std::abs(largest) / length;
    for (int i = 0; i < n; i++) vectors.at(i, k) *= by;
  }
  return true;
}

// Those of a real matrix: values are real or conjugates behind each other, and vectors are packed as LAPACK does.
static void pack_pairs(std::vector<Wide> &values, Matrix &vectors) {
  const int n = vectors.cols;
  std::vector<Wide> of;
  Matrix packed(n, n);
  double largest = 0;
  for (const Wide &x : values) largest = std::max(largest, std::abs(x));
  for (int k = 0; k < n; k++) {
    const bool real = std::abs(values[k].imag()) <= 1e-8 * largest;
    if (!real && values[k].imag() < 0) continue;
    const int at = (int)of.size();
    if (at >= n || (!real && at + 1 >= n)) break;
    for (int i = 0; i < n; i++) {
      packed.at(i, at) = vectors.at(i, k).real();
      if (!real) packed.at(i, at + 1) = vectors.at(i, k).imag();
    }
    of.push_back(real ? values[k].real() : values[k]);
    if (!real) of.push_back(std::conj(values[k]));
  }
  of.resize(n);
  values = of;
  vectors = packed;
}
