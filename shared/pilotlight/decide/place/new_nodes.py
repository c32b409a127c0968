"""New nodes for pods without room: of the cheapest candidate that caps, budgets and spot shares leave, or why none."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pilotlight.decide.fit.fit import NOBODY, Bin, fill, of_offering
from pilotlight.decide.offers.no_pool import unpriced_pool
from pilotlight.decide.offers.selection import Candidate, Eligible, held_back
from pilotlight.decide.offers.spot_economics import spot_verdict
from pilotlight.decide.place.belonging import PoolNames, wait_for_own_zone, wait_for_short_type, zones_to_ask_again
from pilotlight.decide.place.purchase import A_PURCHASE, Group, Purchase
from pilotlight.facts.capacity import Offering
from pilotlight.facts.labels import HOSTNAME, ZONE
from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.place.pod_verdicts import NOT_NOW, Code, Rejected
from pilotlight.facts.workload import Finding, NearRule, PodShape
from pilotlight.units import cents

if TYPE_CHECKING:
    from pilotlight.decide.place.provision import Provisioner


def buy_nodes(run: "Provisioner", group: Group, homes: PoolNames | None) -> int:
    """Buy nodes for pods; returns how many get one. With ``homes`` only there, and nothing is told of the rest."""
    able, picky = _able_now(run, group), group.picky
    if able.candidates and picky:
        able = _near_enough(run, able, group)
    if homes is None and run.may_wait and (better := wait_for_own_zone(run, group, run.homes_of(group.shape))):
        run.tell("waiting", group, "", better, _not_bought(run, group, able), code="zone")
        return 0
    if not able.candidates:
        if homes is None:
            _cannot(run, group, able)
        return 0
    done = 0
    while done < len(group.pods):
        left = Group(group.shape, group.pods[done:])
        count = _buy_best(run, left, able, homes)
        if not count:
            break
        done += count
        if picky:
            break
        if run.headroom.spot_shares is not None and group.shape.gang is None:
            able = _able_now(run, group)
    return done


def _able_now(run: "Provisioner", group: Group) -> Eligible:
    """Candidates sold now that a group may be bought: its own zones anew where it would go to a dearer type."""
    sold, shape = _sold(run), group.shape
    able = run.able(sold if shape.due is None else run.offerings, shape)
    if shape.due is not None and len(sold) < len(run.offerings):  # What it falls back on may be sold elsewhere.
        names = {offering.name for offering in sold}
        able = replace(able, candidates=tuple(c for c in able.candidates if c.offering.name in names))
    again = zones_to_ask_again(run, group, able) if run.may_wait else ()
    return replace(able, candidates=again) if again else able


def _buy_best(run: "Provisioner", group: Group, able: Eligible, homes: PoolNames | None) -> int:
    """Buy nodes of the cheapest candidate the caps leave room for. Returns pods placed; none: they are refused."""
    order = run.ranking(able, group.shape, len(group.pods))
    blocked: list[Rejected] = []
    for index, (usd, candidate) in enumerate(order):
        # The last pods of many may cost less on a smaller type than on a node of theirs that they do not fill.
        if homes is not None and candidate.offering.pool not in homes and (index or run.may_wait):
            continue
        together = -(-len(group.pods) // candidate.per_node) if group.shape.gang else 1
        terms, (room, figures, code) = _afforded(run, candidate, group, together)
        if room <= 0:
            name = candidate.offering.name
            if code == "quota":
                _short_of_quota(run, candidate.offering.pool, figures)
            blocked.append(Rejected(offering=name, code=code, why=figures, usd_per_useful_hour=usd))
            continue
        most = _most_on_spot(run, candidate, group)
        if most < 1:
            why = "more of its pods on spot than max_spot_share allows"
            blocked.append(
                Rejected(offering=candidate.offering.name, code="spot-share", why=why, usd_per_useful_hour=usd)
            )
            continue
        better = wait_for_short_type(run, candidate, group) if run.memory.backoffs else ""
        if better:
            if homes is None:
                name = candidate.offering.name
                blocked.append(Rejected(offering=name, code="dearer", why=better, usd_per_useful_hour=usd))
                rejected = (*blocked, *run.passed_over(able, len(group.pods), index), *_not_bought(run, group, able))
                run.tell("waiting", group, "", better, rejected, code="backoff")
            return 0
        nodes = min(max(1, min(most, len(group.pods)) // candidate.per_node), room)
        nodes = 1 if group.picky else nodes
        pods = group.pods[: min(most, nodes * candidate.per_node)]
        run.take_spot_share(candidate.offering.pool, group.shape, len(pods))
        _open(run, candidate, nodes, Group(group.shape, pods), terms)
        why = f"{cents(usd)} per useful hour and pod, the least of {len(order)} that can hold it"
        why += f"; {able.why}" if able.why else ""
        if candidate.offering.capacity_type == "spot":
            rules = run.policy.of_class(group.shape.workload_class)
            why = f"{why}; on spot {spot_verdict(group.shape, candidate.offering, rules).why}"
        rejected = (*blocked, *run.passed_over(able, len(group.pods), index), *_not_bought(run, group, able))
        run.tell("bought", Group(group.shape, pods), candidate.offering.name, why, rejected, usd)
        return len(pods)
    if homes is None:
        stranded = "every offering would strand more GPUs than max_stranded_gpus allows"
        code, figures = (blocked[0].code, blocked[0].why) if blocked else ("stranded", stranded)
        run.tell("refused", group, "", figures, (*blocked, *_not_bought(run, group, able)), code=code)
    return 0


def _most_on_spot(run: "Provisioner", candidate: Candidate, group: Group) -> int:
    """Pods of a group that may be bought a candidate by their shares of spot: all where that is no spot."""
    shares = run.headroom.spot_shares
    if shares is None or candidate.offering.capacity_type != "spot":
        return len(group.pods)
    return shares.pods(group.shape)


def _short_of_quota(run: "Provisioner", pool: str, figures: str) -> None:
    message = f"not one more node of it can be had: {figures}; ask the cloud for more quota, or lower other use"
    found = Finding(subject=f"pool {pool}", code="quota-full", message=message)
    if not any((one.subject, one.code) == (found.subject, found.code) for one in run.findings):
        run.findings.append(found)


def _sold(run: "Provisioner") -> Sequence[Offering]:
    """Offerings that may be bought now: all there are, one, or those of one zone."""
    if run.only is not None:
        return (run.only,)
    return [o for o in run.offerings if o.zone in ("", run.zone)] if run.zone else run.offerings


def _afforded(
    run: "Provisioner", candidate: Candidate, group: Group, together: int
) -> tuple[Terms | None, tuple[int, str, Code]]:
    """Terms on which a node of a candidate is bought, and room for how many: with time for the calls of all that are
    wanted where there is money for that, else one by one."""
    offering, others = candidate.offering, -(-len(group.pods) // candidate.per_node) - 1
    if run.headroom.purse is None:
        return None, run.headroom.room(offering, None)
    terms = run.headroom.terms(offering, group.shape, together, group.stop_s, others)
    room = run.headroom.room(offering, terms)
    if room[0] > 0 or not others:
        return terms, room
    terms = run.headroom.terms(offering, group.shape, together, group.stop_s)
    return terms, run.headroom.room(offering, terms)


def _near_enough(run: "Provisioner", able: Eligible, group: Group) -> Eligible:
    """Candidates with so many pods a node as the pods that are near allow; where they allow none, a finding."""
    candidates: list[Candidate] = []
    broken: list[Rejected] = []
    for one in able.candidates:
        counts = run.allowed.neighbours.copy_counts()
        fresh = _fresh(run, one.offering, 1)
        most = min(one.per_node, len(group.pods))
        holds = sum(count for _, count in fill(group.shape, most, fresh, run.allowed))
        near = group.shape.near
        rule = run.allowed.neighbours.broken_rule(near, fresh[0]) if near is not None and not holds else None
        run.allowed.neighbours.restore(counts)
        if holds:
            candidates.append(Candidate(one.offering, holds, one.throughput))
        else:
            why = _not_near(rule, fresh[0]) if rule else "an empty node does not hold it"
            broken.append(Rejected(offering=one.offering.name, code="neighbours", why=why))
    rejected = (*able.rejected, *broken)
    if _one_host(group.shape):
        most = max((one.per_node for one in candidates), default=0)
        candidates = [one for one in candidates if one.per_node == most]
    if candidates or able.held:
        return Eligible(tuple(candidates), rejected, able.held, barred=able.barred)
    message = f"no node that could be bought would do: {'; '.join(sorted({r.why for r in broken}))}"
    return Eligible((), rejected, finding=("neighbours", f"{message}; mend the rule, or add a pool where it holds"))


def _fresh(run: "Provisioner", offering: Offering, nodes: int) -> list[Bin]:
    """New nodes, which pods may spread over from now on."""
    bins = [of_offering(offering, "new", offering.name) for _ in range(nodes)]
    for bin_ in bins if run.allowed.neighbours is not NOBODY else ():
        run.allowed.neighbours.add_place(bin_)
    return bins


def _filled(run: "Provisioner", offering: Offering, nodes: int, group: Group) -> list[Bin]:
    """New nodes, and a group's pods put there; of nodes alike that nobody tells apart, full ones are one bin."""
    shape, left = group.shape, len(group.pods)
    if run.allowed.neighbours is not NOBODY or offering.pool in run.steered:
        bins, placed = _fresh(run, offering, nodes), 0
        for bin_, count in fill(shape, left, bins, run.allowed):
            run.house(bin_, group.pods[placed : (placed := placed + count)])
        return bins
    bins, each = [], -1
    while len(bins) < nodes:
        if 0 <= each <= left:
            bins.append(bins[-1] if bins[-1].full else bins[-1].alike())
        else:
            bins.append(of_offering(offering, "new", offering.name))
            each = sum(count for _, count in fill(shape, left, bins[-1:], run.allowed))
        left -= each
    return bins


def _not_bought(run: "Provisioner", group: Group, able: Eligible) -> tuple[Rejected, ...]:
    """Offerings that are no candidates, those first that would do."""
    return (*held_back(able, group.shape, len(group.pods), run.policy), *able.rejected)


def _open(run: "Provisioner", candidate: Candidate, nodes: int, group: Group, terms: Terms | None) -> None:
    offering = candidate.offering
    purchase = run.purchases.get(offering.name)
    if purchase is None:
        run.opened += 1
        purchase = run.purchases[offering.name] = Purchase(offering, number=run.opened)
    run.headroom.add(offering, nodes, terms)
    purchase.terms += [terms] * nodes if terms is not None else []
    fresh = _filled(run, offering, nodes, group)
    if not all(bin_.full for bin_ in fresh):
        run.open.add(purchase.number * A_PURCHASE + len(purchase.bins), fresh)
    purchase.bins += fresh
    purchase.charge(group.shape, group.pods)
    run.note_demand(offering.pool, nodes, group)


def _cannot(run: "Provisioner", group: Group, able: Eligible) -> None:
    if able.finding is not None:
        code, message = able.finding
        if code in ("selector", "toleration") and (unsold := unpriced_pool(group.shape, run.policy, run.offerings)):
            code, message = "no-pool", unsold
        for pod in group.pods:
            run.findings.append(
                Finding(subject=pod.full_name, code=code, message=message, uid=pod.uid, team=group.shape.team)
            )
        run.tell("finding", group, "", message, able.rejected, code=code)
        return
    rejected = _not_bought(run, group, able)
    if able.barred:
        run.tell("refused", group, "", able.barred, rejected, code="step")
    else:
        later = [r for r in rejected if r.code in NOT_NOW]
        closed = "; ".join(dict.fromkeys(r.why for r in later if r.code == "rule"))
        why = "nothing it may run on can be had now: " + "; ".join(f"{r.offering}: {r.why}" for r in later)
        rule: Code = "deadline" if able.why else later[0].code if later else ""
        run.tell("waiting", group, "", able.why or closed or why, rejected, code=rule)


def _not_near(rule: NearRule, bin_: Bin) -> str:
    """Reason why a new node does not meet a rule."""
    if bin_.domain(rule.topology) is None:
        fix = f"set pools.{bin_.pool}.{'zones' if rule.topology == ZONE else 'labels'} where its nodes have it"
        return f"to be {rule.says} a node needs that label, and pool {bin_.pool} is not known to have it: {fix}"
    return f"a new node would not be {rule.says}"


def _one_host(shape: PodShape) -> bool:
    """True where pods of a shape have to be on one node: the first decides how many find a place."""
    rules = shape.near.rules if shape.near is not None else ()
    return any(rule.kind == "with" and rule.own and rule.topology == HOSTNAME for rule in rules)
