"""Pods that wait, each unit placed in its order: gangs and pods take room from each other."""

from collections import Counter

from pilotlight.decide.place.gangs import place_gang
from pilotlight.decide.place.purchase import Group, in_units
from pilotlight.decide.work import Work


def place_pods(work: Work) -> None:
    """Plan for all pods that wait, in order."""
    run, view = work.run, work.view
    pending = [pod for pod in view.pending if pod.uid not in work.infeasible] if work.infeasible else view.pending
    asked = run.in_flight(pending)
    gangs = any(pod.shape.gang for pod in pending)
    running = Counter(p.gang for n in view.nodes for p in n.pods if p.gang) if gangs else Counter()
    for gang, groups in in_units(pending):
        # What was asked for counts in the order, so that the rest of a gang finds the room which that plan left to it.
        flown = [asked[pod.uid] for group in groups for pod in group.pods if pod.uid in asked]
        rest = [Group(group.shape, [pod for pod in group.pods if pod.uid not in asked]) for group in groups]
        rest = [group for group in rest if group.pods]
        if gang is not None and rest:
            place_gang(run, gang, rest, running[gang], flown)
        elif rest:
            run.place(rest[0])
