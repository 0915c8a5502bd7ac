package keyexpr

import (
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
)

// piece is one of the strings that are concatenated to a key column.
type piece struct {
	node *node
	// sealed means that keys sort by this piece before the next: its width is fixed, or a separator ends it.
	sealed    bool
	separator bool // the piece is the separator of a splice
}

func piecesOf(n *node) []piece {
	if n.pieces != nil {
		return n.pieces
	}
	return []piece{{node: n, sealed: n.width > 0}}
}

// joinedOrder returns the order of joined pieces. The first unsealed piece and all after it sort as one string.
func joinedOrder(pieces []piece) (order []Segment) {
	for i, p := range pieces {
		switch {
		case p.separator:
		case p.sealed || i == len(pieces)-1:
			order = append(order, textOrder(p.node)...)
		default:
			var rest []string
			for _, p := range pieces[i:] {
				src := p.node.src
				if p.node.typ != table.String {
					src = "text(" + src + ")"
				}
				rest = append(rest, src)
			}
			return append(order, unordered(strings.Join(rest, " + "), 0)...)
		}
	}
	return order
}

// textTells returns tells for the value's text. Values of different types, such as 1 and "1", may have the same text.
func (n *node) textTells() []int {
	if n.typ == table.Any {
		return nil
	}
	return n.tells
}

// joinedTells returns the tells of joined pieces, up to the first whose end cannot be recognized in the joined text.
func joinedTells(pieces []piece) (tells []int) {
	for i, p := range pieces {
		rest := pieces[i+1:]
		ends := p.sealed || !slices.ContainsFunc(rest, func(p piece) bool { return p.node.width == 0 })
		if !ends && p.node.digits {
			next := rest[0].node.constant
			ends = next != nil && len(next.Bytes) > 0 && (next.Bytes[0] < '0' || next.Bytes[0] > '9')
		}
		if !ends {
			break
		}
		tells = union(tells, p.node.textTells())
	}
	return tells
}

func union(a, b []int) []int {
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}

// Tells returns the columns for which different values always give different results of the program.
func (p *Program) Tells() (names []string) {
	for _, i := range p.root.tells {
		names = append(names, p.env.Columns[i].Name)
	}
	return names
}
