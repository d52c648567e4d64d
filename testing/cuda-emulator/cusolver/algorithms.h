// Decompositions. Those that iterate are Jacobi's.
#pragma once

#include "matrix.h"

// The lower factor in place, of the lower triangle. Returns 0, or the order of the minor that is not positive.
static int cholesky(Matrix &a) {
  for (int j = 0; j < a.cols; j++) {
    double d = a.at(j, j).real();
    for (int k = 0; k < j; k++) d -= std::norm(a.at(j, k));
    if (!(d > 0)) return j + 1;
    a.at(j, j) = std::sqrt(d);
    for (int i = j + 1; i < a.rows; i++) {
      Wide sum = a.at(i, j);
      for (int k = 0; k < j; k++) sum -= a.at(i, k) * std::conj(a.at(j, k));
      a.at(i, j) = sum / a.at(j, j);
    }
  }
  return 0;
}

// a := (1 - tau v v^H) a from row and column on; v is 1 and what is below it in column `of` of `from`.
static void reflect(Matrix &a, const Matrix &from, int of, Wide tau, int first) {
  for (int c = first; c < a.cols; c++) {
    Wide sum = a.at(of, c);
    for (int i = of + 1; i < a.rows; i++) sum += std::conj(from.at(i, of)) * a.at(i, c);
    a.at(of, c) -= tau * sum;
    for (int i = of + 1; i < a.rows; i++) a.at(i, c) -= tau * sum * from.at(i, of);
  }
}

// R, and below it the reflections, as LAPACK keeps them.
static std::vector<Wide> reflections(Matrix &a) {
  std::vector<Wide> tau(std::min(a.rows, a.cols));
  for (int j = 0; j < (int)tau.size(); j++) {
    double below = 0;
    for (int i = j + 1; i < a.rows; i++) below += std::norm(a.at(i, j));
    Wide alpha = a.at(j, j);
    if (below == 0 && alpha.imag() == 0) continue;
    double beta = -std::copysign(std::sqrt(std::norm(alpha) + below), alpha.real());
    tau[j] = (beta - alpha) / beta;
    for (int i = j + 1; i < a.rows; i++) a.at(i, j) /= alpha - beta;
    reflect(a, a, j, std::conj(tau[j]), j + 1);
    a.at(j, j) = beta;
  }
  return tau;
}

static Matrix orthonormal(const Matrix &a, int n, int k, const std::vector<Wide> &tau) {
  Matrix q(a.rows, n);
  for (int i = 0; i < n; i++) q.at(i, i) = 1;
  for (int j = k - 1; j >= 0; j--) reflect(q, a, j, tau[j], 0);
  return q;
}

// Columns p and q of a by a rotation that makes them orthogonal: of v, too. `off` is a_p^H a_q.
static void rotate(Matrix &a, int p, int q, double c, Wide s) {
  for (int i = 0; i < a.rows; i++) {
    Wide x = a.at(i, p), y = a.at(i, q);
    a.at(i, p) = c * x - std::conj(s) * y;
    a.at(i, q) = s * x + c * y;
  }
}

static void angles(double alpha, double beta, Wide off, double &c, Wide &s) {
  double size = std::abs(off), zeta = (beta - alpha) / (2 * size);
  double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
  c = 1 / std::sqrt(1 + t * t);
  s = c * t * (off / size);
}

static void order(std::vector<double> &values, std::vector<Matrix *> columns, bool descending) {
  std::vector<int> by(values.size());
  std::iota(by.begin(), by.end(), 0);
  std::stable_sort(by.begin(), by.end(), [&](int x, int y) { return descending ? values[x] > values[y] : values[x] < values[y]; });
  std::vector<double> sorted;
  for (int from : by) sorted.push_back(values[from]);
  values = sorted;
  for (Matrix *m : columns) {
    Matrix former = *m;
    for (size_t j = 0; j < by.size(); j++)
      for (int i = 0; i < m->rows; i++) m->at(i, j) = former.at(i, by[j]);
  }
}

// Eigenvalues, ascending, of the Hermitian matrix of which the lower triangle is given; a becomes the vectors.
static std::vector<double> eigen(Matrix &a) {
  int n = a.cols;
  for (int j = 0; j < n; j++) {
    a.at(j, j) = a.at(j, j).real();
    for (int i = 0; i < j; i++) a.at(i, j) = std::conj(a.at(j, i));
  }
  Matrix v = Matrix::identity(n);
  for (int sweep = 0; sweep < 60; sweep++) {
    double left = 0, all = 0;
    for (int j = 0; j < n; j++)
      for (int i = 0; i < n; i++) (i == j ? all : left) += std::norm(a.at(i, j));
    if (!(left > 1e-34 * (all + left))) break;
    for (int p = 0; p < n; p++)
      for (int q = p + 1; q < n; q++) {
        if (a.at(p, q) == 0.0) continue;
        double c;
        Wide s;
        angles(a.at(p, p).real(), a.at(q, q).real(), a.at(p, q), c, s);
        rotate(a, p, q, c, s);
        a = a.adjoint();
        rotate(a, p, q, c, s);
        a = a.adjoint();
        rotate(v, p, q, c, s);
      }
  }
  std::vector<double> values(n);
  for (int i = 0; i < n; i++) values[i] = a.at(i, i).real();
  order(values, {&v}, false);
  a = v;
  return values;
}

// Orthonormal columns behind the first `have` of them.
static void complete(Matrix &u, int have) {
  for (int j = have, next = 0; j < u.cols; next++) {
    for (int i = 0; i < u.rows; i++) u.at(i, j) = i == next % u.rows ? 1 : 0;
    for (int twice = 0; twice < 2; twice++)
      for (int k = 0; k < j; k++) {
        Wide dot = 0;
        for (int i = 0; i < u.rows; i++) dot += std::conj(u.at(i, k)) * u.at(i, j);
        for (int i = 0; i < u.rows; i++) u.at(i, j) -= dot * u.at(i, k);
      }
    double norm = 0;
    for (int i = 0; i < u.rows; i++) norm += std::norm(u.at(i, j));
    if (norm < 0.1 / u.rows) continue;
    for (int i = 0; i < u.rows; i++) u.at(i, j) /= std::sqrt(norm);
    j++;
  }
}

// a = u diag(values) v^H with so many columns of u and v.
static std::vector<double> singular(const Matrix &a, Matrix &u, Matrix &v) {
  if (a.rows < a.cols) return singular(a.adjoint(), v, u);
  Matrix left = a, right = Matrix::identity(a.cols);
  int n = a.cols;
  bool rotated = true;
  for (int sweep = 0; sweep < 60 && rotated; sweep++) {
    rotated = false;
    for (int p = 0; p < n; p++)
      for (int q = p + 1; q < n; q++) {
        double alpha = 0, beta = 0;
        Wide off = 0;
        for (int i = 0; i < a.rows; i++) {
          alpha += std::norm(left.at(i, p));
          beta += std::norm(left.at(i, q));
          off += std::conj(left.at(i, p)) * left.at(i, q);
        }
        if (!(std::abs(off) > 1e-16 * std::sqrt(alpha * beta))) continue;
        rotated = true;
        double c;
        Wide s;
        angles(alpha, beta, off, c, s);
        rotate(left, p, q, c, s);
        rotate(right, p, q, c, s);
      }
  }
  std::vector<double> values(n);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < a.rows; i++) values[j] = std::hypot(values[j], std::abs(left.at(i, j)));
  order(values, {&left, &right}, true);
  int have = 0;
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < a.rows && values[j] > 0; i++) u.at(i, j) = left.at(i, j) / values[j];
    have += values[j] > 0;
    for (int i = 0; i < n; i++) v.at(i, j) = right.at(i, j);
  }
  complete(u, have);
  return values;
}
