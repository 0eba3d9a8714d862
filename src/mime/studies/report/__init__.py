"""The page of a study: all members in one file, to look at in a browser; and their table as CSV.

table           what varies and what came out, a column each, with units; the CSV
front           members that no other one beats in two columns at once
selection       which members the page holds, when they are too many for a page
heat            means, smallest and largest values over cells of two parameters, of all members
sensitivity     Sobol's indices of each figure, and how sure they are
slopes          d figure / d parameter at the best member, through the simulator
extremes        the best and the worst member of each figure, run again, as replays
page            all of it as one HTML file
page/           the page's own JavaScript and style; it needs no other package
"""
