// The type in which kernels form sums and other intermediate results of a storage type, apart from every kernel because
// all that add need it. A type too narrow to add in specialises AccumulatorFor.
#pragma once

namespace plugrad::cuda {

template <class T> struct AccumulatorFor { using type = T; };
template <class T> using AccumulatorOf = typename AccumulatorFor<T>::type;

}  // namespace plugrad::cuda
