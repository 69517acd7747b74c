// A view of contiguous elements that somebody else owns (std::span is C++20).
#ifndef TRANSEPT_RUNTIME_SPAN_H
#define TRANSEPT_RUNTIME_SPAN_H

#include <cstddef>
#include <type_traits>
#include <vector>

namespace transept {

template <typename T> class Span {
public:
  Span() = default;
  Span(T *data, size_t size) : data_(data), size_(size) {}
  template <typename U, typename = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
  Span(Span<U> other) : data_(other.data()), size_(other.size()) {}
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>>
  Span(const std::vector<U> &vector) : data_(vector.data()), size_(vector.size()) {}
  Span(std::vector<std::remove_const_t<T>> &vector) : data_(vector.data()), size_(vector.size()) {}

  T *data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T &operator[](size_t index) const { return data_[index]; }
  T *begin() const { return data_; }
  T *end() const { return data_ + size_; }

private:
  T *data_ = nullptr;
  size_t size_ = 0;
};

} // namespace transept

#endif
