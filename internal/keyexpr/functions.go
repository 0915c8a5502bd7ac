package keyexpr

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/tsimport/internal/suggest"
)

// function describes one of our functions: its syntax, the number of its arguments, and how it is compiled.
type function struct {
	usage string
	least int
	most  int // -1 means any number
	build func(c *compiler, k *call) *node
}

// functions maps names to functions. It is set by init because the functions refer to it: arguments can be calls.
var functions map[string]function

func init() {
	functions = map[string]function{
		"col":     {`col("name")`, 1, 1, (*compiler).col},
		"pad":     {`pad(x, digits) or pad(x, digits, signed)`, 2, 3, (*compiler).pad},
		"splice":  {`splice("separator", part, …) or splice(auto, part, …)`, 2, -1, (*compiler).splice},
		"reverse": {`reverse(x) of a text or an integer`, 1, 1, (*compiler).reverse},
		"bucket":  {`bucket(x, n)`, 2, 2, (*compiler).bucket},
		"salt":    {`salt(n) or salt(n, column, …)`, 1, -1, (*compiler).salt},
		"desc":    {`desc(integer) or desc(integer, "text")`, 1, 2, (*compiler).desc},
		"lookup":  {`lookup(x, "file.csv") or lookup(x, "file.csv", "keep")`, 2, 3, (*compiler).lookup},
		"text":    {`text(x)`, 1, 1, (*compiler).textOf},
		"int":     {`int(x) of a text, an integer or a double`, 1, 1, (*compiler).integer},
		"lower":   {`lower(x) of a text`, 1, 1, (*compiler).letters},
		"upper":   {`upper(x) of a text`, 1, 1, (*compiler).letters},
		"substr": {`substr(x, from) or substr(x, from, n) of a text or an integer, counting characters from 1`, 2, 3,
			(*compiler).substr},
		"format_time": {`format_time(x, "layout"[, "zone"][, "s|ms|us|ns"])`, 2, 4, (*compiler).formatTime},
		"year":        {`year(x[, "zone"][, "s|ms|us|ns"])`, 1, 3, (*compiler).timePart},
		"month":       {`month(x[, "zone"][, "s|ms|us|ns"])`, 1, 3, (*compiler).timePart},
		"day":         {`day(x[, "zone"][, "s|ms|us|ns"])`, 1, 3, (*compiler).timePart},
	}
	for name, d := range digests {
		functions[name] = function{fmt.Sprintf("%s(x) or %s(x, digits), digits from 1 to %d", name, name, 2*d.size), 1, 2,
			(*compiler).digest}
	}
}

const noRandom = "is not available: a row loaded again, or a later row of the same key, would get another key, " +
	"so rows would be duplicated, not replaced; salt(n) spreads rows and is the same every time"

const noClock = "is not available: a rerun would give rows other keys; use a time column of the input"

const noMapOrder = "is not available: a map has no order, so a row's key would vary; name its parts, as in m.a"

const noLocal = "is not available: rows would get other keys in another machine's time zone; name the zone"

// refused maps functions that are left out on purpose, although users may expect them, to the reason.
var refused = map[string]string{
	"random": noRandom, "rand": noRandom, "randint": noRandom, "uuid": noRandom, "RANDOM": noRandom, "RAND": noRandom,
	"now": noClock, "today": noClock, "keys": noMapOrder, "values": noMapOrder, "toPairs": noMapOrder,
	"string": "is not available: it turns a null into the text <nil>; text(x) does not",
}

func unknownFunction(name string) refusal {
	if why, ok := refused[name]; ok {
		return refusef("%s() %s", name, why)
	}
	names := slices.Sorted(maps.Keys(functions))
	if near := suggest.Nearest(name, names); len(near) > 0 {
		for i, n := range near {
			near[i] = functions[n].usage
		}
		return refusef("unknown function %s(…); did you mean %s?", name, strings.Join(near, " or "))
	}
	return refusef("unknown function %s(…); want %s or one of the expression language's", name, strings.Join(names, ", "))
}
