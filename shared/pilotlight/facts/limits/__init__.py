"""Limits as values: what a policy, a person, a route or an isolated object rules out.

Here are the words of the policy's values and its rules, brakes that people set, the table of routes with the right that
each needs, checks and their verdicts, and objects that are set apart after unexpected errors. Nothing here decides:
``decide.limits`` does.
"""
