"""Special functions by the names of torch.special. Most are functions of the package too.

>>> from plugrad import special, tensor
>>> special.entr(tensor([0.0, 1.0]))
Tensor([0. 0.])
"""

from ._plugrad import (Tensor as Tensor, digamma as digamma, entr as entr, erf as erf, erfc as erfc, erfcx as erfcx,
                       erfinv as erfinv, exp2 as exp2, expm1 as expm1, i0 as i0, i0e as i0e, i1 as i1, i1e as i1e,
                       lgamma as gammaln, log1p as log1p, log_ndtr as log_ndtr, log_softmax as log_softmax, logit as logit,
                       logsumexp as logsumexp, mvlgamma as multigammaln, ndtr as ndtr, ndtri as ndtri,
                       polygamma as polygamma, digamma as psi, round as round, sigmoid as expit, sinc as sinc,
                       softmax as softmax, xlog1py as xlog1py, xlogy as xlogy)
