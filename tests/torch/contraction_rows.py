"""Products and distances: see write_golden.py."""
import torch
from torch.nn import functional as F
from write_golden import f64, spread

INF = float("inf")
WHOLE = torch.tensor([[3, -2, 5], [1, 4, -6]])
EQUATIONS = [  # with the shapes of their operands
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,kj->ki", (2, 3), (4, 3)), ("i,j->ij", (2,), (3,)),
    ("i,i->", (4,), (4,)), ("ij,ij->ij", (2, 3), (2, 3)), ("ij,ij->i", (2, 3), (2, 3)), ("ij,ij", (2, 3), (2, 3)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)), ("bhqd,bhkd->bhqk", (2, 2, 3, 2), (2, 2, 4, 2)), ("ii->i", (3, 3)),
    ("ii", (3, 3)), ("iij->ji", (2, 2, 3)), ("iii->i", (2, 2, 2)), ("ij->", (2, 3)), ("ij->ji", (2, 3)), ("ba", (2, 3)),
    ("...ij,...jk->...ik", (2, 2, 3), (3, 2)), ("...ij->...ji", (2, 2, 3)), ("i...->...", (2, 3, 2)),
    ("...,...", (2, 3), (3,)), ("b...d,d->b...", (2, 3, 2, 2), (2,)), ("i...j,k...j->ik...", (2, 1, 2), (3, 4, 2)),
    ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)), ("ni,oij,nj->no", (3, 2), (2, 2, 4), (3, 4)),
    ("ij,ij,ij->j", (2, 3), (2, 3), (2, 3)), ("ij,jk->ik", (2, 1), (3, 4)), ("ij,ij->ij", (1, 3), (2, 1)),
    ("i,j,k->kji", (2,), (3,), (2,)), ("Ab,bA->Ab", (2, 3), (3, 2)), (" i j , j -> i ", (2, 3), (3,)), ("->", ()),
    (",i->i", (), (3,)), ("ij,kl->", (2, 3), (2, 2)), ("ij,j->ij", (2, 3), (3,)), ("ij,jk->ik", (2, 0), (0, 3)),
    ("ij,jk->ik", (0, 2), (2, 3)), ("ii->i", (0, 0)), ("iji,jk->ki", (2, 3, 2), (3, 2)), ("...ii->...", (2, 3, 3))]


def einsum(index, equation, *shapes):
    return f"einsum {index}: {equation}", lambda *x: torch.einsum(equation, *x), shapes


ROWS = [einsum(i, *each) for i, each in enumerate(EQUATIONS)] + [
    ("einsum of integers", lambda a, b: torch.einsum("ij,kj->ik", a, b), [WHOLE, WHOLE]),
    ("tensordot 2", lambda a, b: torch.tensordot(a, b), [(2, 3, 4), (3, 4, 2)]),
    ("tensordot 0", lambda a, b: torch.tensordot(a, b, 0), [(2, 3), (2,)]),
    ("tensordot lists", lambda a, b: torch.tensordot(a, b, ([2, 0], [0, -1])), [(2, 3, 4), (4, 3, 2)]),
    ("tensordot all", lambda a, b: torch.tensordot(a, b, ([0, 1], [1, 0])), [(2, 3), (3, 2)]),
    ("outer", torch.outer, [(3,), (2,)]),
    ("outer empty", torch.outer, [(0,), (2,)]),
    ("inner", torch.inner, [(2, 3), (4, 2, 3)]),
    ("inner vectors", torch.inner, [(3,), (3,)]),
    ("inner scalar", torch.inner, [(), (2, 3)]),
    ("dot", torch.dot, [(4,), (4,)]),
    ("dot empty", torch.dot, [(0,), (0,)]),
    ("dot integers", torch.dot, [WHOLE[0], WHOLE[1]]),
    ("vdot", torch.vdot, [(4,), (4,)]),
    ("mv", torch.mv, [(2, 3), (3,)]),
    ("mm", torch.mm, [(2, 3), (3, 4)]),
    ("bmm", torch.bmm, [(2, 2, 3), (2, 3, 4)]),
    ("addmm", torch.addmm, [(4,), (2, 3), (3, 4)]),
    ("addmm scaled", lambda x, a, b: torch.addmm(x, a, b, beta=0.5, alpha=-2), [(2, 1), (2, 3), (3, 4)]),
    ("addmm beta 0", lambda x, a, b: torch.addmm(x, a, b, beta=0), [f64([[INF, float("nan")]]), (2, 3), (3, 2)]),
    ("addmv", lambda x, a, b: torch.addmv(x, a, b, beta=2, alpha=3), [(2,), (2, 3), (3,)]),
    ("baddbmm", lambda x, a, b: torch.baddbmm(x, a, b, beta=2, alpha=3), [(2, 1, 2), (2, 3, 2), (2, 2, 2)]),
    ("addcmul", torch.addcmul, [(2, 1), (3,), (2, 3)]),
    ("addcmul value", lambda x, a, b: torch.addcmul(x, a, b, value=-0.5), [(2, 3), (2, 3), ()]),
    ("addcmul integers", lambda x, a: torch.addcmul(x, a, a, value=3), [WHOLE, WHOLE]),
    ("addcdiv", lambda x, a, b: torch.addcdiv(x, a, b, value=0.25), [(2, 3), (3,), spread((2, 3), 0.5, 3)]),
    ("kron", torch.kron, [(2, 3), (3, 2)]),
    ("kron ranks", torch.kron, [(2,), (2, 1, 3)]),
    ("kron scalars", torch.kron, [(), ()]),
    ("kron empty", torch.kron, [(2, 0), (1, 3)]),
    ("cross last", lambda a, b: torch.linalg.cross(a, b), [(2, 3), (2, 3)]),
    ("cross first", torch.cross, [(2, 3, 3), (2, 3, 3)]),
    ("cross axis", lambda a, b: torch.cross(a, b, dim=0), [(3, 2), (3, 1)]),
    ("trace", torch.trace, [(2, 3)]),
    ("trace integers", torch.trace, [WHOLE.to(torch.int32)]),
    ("trace empty", torch.trace, [(0, 3)]),
    ("matrix_power 0", lambda x: torch.matrix_power(x, 0) + 0 * x, [(2, 3, 3)]),
    ("matrix_power 1", lambda x: torch.matrix_power(x, 1), [(3, 3)]),
    ("matrix_power 5", lambda x: torch.matrix_power(x, 5), [(2, 2, 2)]),
    ("multi_dot", lambda *x: torch.linalg.multi_dot(x), [(2, 3), (3, 4), (4, 1), (1, 5)]),
    ("multi_dot vectors", lambda *x: torch.linalg.multi_dot(x), [(2,), (2, 3), (3,)]),
    ("bilinear", F.bilinear, [(2, 3), (2, 4), (5, 3, 4), (5,)]),
    ("bilinear vector", F.bilinear, [(3,), (2,), (2, 3, 2)]),
    ("dist", torch.dist, [(2, 3), (3,)]),
    ("dist inf", lambda x, y: torch.dist(x, y, INF), [(4,), (4,)]),
    ("pairwise_distance", F.pairwise_distance, [(2, 3), (2, 3)]),
    ("pairwise_distance 1", lambda x, y: F.pairwise_distance(x, y, 1, 0.25, True), [(2, 3), (3,)]),
    ("cosine_similarity", F.cosine_similarity, [(2, 3), (2, 3)]),
    ("cosine_similarity axis", lambda x, y: F.cosine_similarity(x, y, -2), [(2, 3, 2), (3, 1)]),
    ("cosine_similarity eps", lambda x, y: F.cosine_similarity(x, y, 0, 4.0), [(3,), (3,)]),
    ("cosine_similarity zero", F.cosine_similarity, [f64([[0., 0.], [1., 2.]]), f64([[1., 2.], [0., 0.]])]),
    ("normalize", F.normalize, [(2, 3)]),
    ("normalize 1", lambda x: F.normalize(x, 1, 0), [(2, 3)]),
    ("normalize short", lambda x: F.normalize(x, 2, -1, 3.0), [(2, 3)]),
    ("normalize zero", F.normalize, [f64([[0., 0.]])]),
    ("renorm", lambda x: torch.renorm(x, 2, 0, 1.5), [(3, 2)]),
    ("renorm 1", lambda x: torch.renorm(x, 1, -1, 2.5), [(2, 2, 3)]),
    *((f"cdist {p}", lambda x, y, p=p: torch.cdist(x, y, p), [(2, 3, 2), (2, 4, 2)]) for p in (0.0, 1.0, 2.0, 3.0, INF)),
    *((f"cdist at 0, {p}", lambda x, p=p: torch.cdist(x, x.detach(), p), [f64([[1., 2.], [1., 3.], [0., 2.]])])
      for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, INF)),
    ("cdist batches", torch.cdist, [(2, 1, 2, 3), (2, 4, 3)]),
    ("cdist ties", lambda x, y: torch.cdist(x, y, INF), [f64([[1., 2.]]), f64([[2., 3.], [3., 0.]])]),
    ("cdist many", torch.cdist, [(26, 2), (2, 2)]),
    ("cdist no elements", torch.cdist, [(2, 0), (3, 0)]),
    ("cdist no rows", torch.cdist, [(0, 2), (3, 2)])]
