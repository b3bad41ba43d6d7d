package catalog

import (
	"context"
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
)

// Product is the state of a product. Brand and category are IDs that nobody checks: an aggregate sees only itself.
type Product struct {
	Name     string `json:"name"`
	Brand    string `json:"brand"`
	Category string `json:"category"`
	Price    Price  `json:"price"`
	Stock    int64  `json:"stock"` // 0 to MaxStock
}

// Bounds of a product, in pieces.
const (
	MaxStock    = 1_000_000_000_000
	MaxQuantity = 1_000_000_000 // that one command adds or takes
)

// The bodies of a product's commands.
type (
	CreateProduct struct {
		Name     string `json:"name"`
		Brand    string `json:"brand"`
		Category string `json:"category"`
		Price    Price  `json:"price"`
		Stock    int64  `json:"stock"`
	}
	ChangePrice struct {
		Price Price `json:"price"`
	}
	AddStock struct {
		Quantity int64 `json:"quantity"`
	}
	TakeStock struct {
		Quantity int64 `json:"quantity"`
	}
)

// Validate implements kernel.Validator.
func (c CreateProduct) Validate() error {
	if err := checkName(c.Name); err != nil {
		return err
	}
	if len(c.Brand) > command.MaxID || len(c.Category) > command.MaxID {
		return fmt.Errorf("brand and category have at most %d bytes, got %d and %d", command.MaxID, len(c.Brand), len(c.Category))
	}
	if c.Stock < 0 || c.Stock > MaxStock {
		return fmt.Errorf("stock is %d; 0 to %d are allowed", c.Stock, int64(MaxStock))
	}
	return c.Price.check()
}

// Validate implements kernel.Validator.
func (c ChangePrice) Validate() error { return c.Price.check() }

// Validate implements kernel.Validator.
func (c AddStock) Validate() error { return checkQuantity(c.Quantity) }

// Validate implements kernel.Validator.
func (c TakeStock) Validate() error { return checkQuantity(c.Quantity) }

func checkQuantity(n int64) error {
	if n < 1 || n > MaxQuantity {
		return fmt.Errorf("quantity is %d; 1 to %d are allowed", n, MaxQuantity)
	}
	return nil
}

// A product's events. They say what happened, in their own words: how much was added, not what is there now.
type (
	ProductCreated struct {
		Name     string `json:"name"`
		Brand    string `json:"brand"`
		Category string `json:"category"`
		Price    Price  `json:"price"`
		Stock    int64  `json:"stock"`
	}
	PriceChanged struct {
		Price Price `json:"price"`
	}
	StockAdded struct {
		Quantity int64 `json:"quantity"`
	}
	StockTaken struct {
		Quantity int64 `json:"quantity"`
	}
)

func registerProduct(c *kernel.Context) {
	product := kernel.Add[Product](c, "product")

	kernel.On(product, "created", func(_ Product, e ProductCreated) Product { return Product(e) })
	kernel.On(product, "price-changed", func(p Product, e PriceChanged) Product { p.Price = e.Price; return p })
	kernel.On(product, "stock-added", func(p Product, e StockAdded) Product { p.Stock += e.Quantity; return p })
	kernel.On(product, "stock-taken", func(p Product, e StockTaken) Product { p.Stock -= e.Quantity; return p })

	kernel.Handle(product, "create", kernel.Creates, createProduct)
	kernel.Handle(product, "change-price", kernel.Existing, changePrice)
	kernel.Handle(product, "add-stock", kernel.Existing, addStock)
	kernel.Handle(product, "take-stock", kernel.Existing, takeStock)
}

func createProduct(_ context.Context, _ *kernel.Scope[Product], c CreateProduct) (kernel.Decision, error) {
	return kernel.Events(ProductCreated(c)), nil
}

func changePrice(_ context.Context, s *kernel.Scope[Product], c ChangePrice) (kernel.Decision, error) {
	if c.Price.Equal(s.State().Price) {
		return kernel.Nothing(), nil
	}
	return kernel.Events(PriceChanged(c)), nil
}

func addStock(_ context.Context, s *kernel.Scope[Product], c AddStock) (kernel.Decision, error) {
	if stock := s.State().Stock; stock > MaxStock-c.Quantity {
		return kernel.Reject(CodeTooMuchStock, "%d in stock, %d more would be above %d", stock, c.Quantity, int64(MaxStock)), nil
	}
	return kernel.Events(StockAdded(c)), nil
}

func takeStock(_ context.Context, s *kernel.Scope[Product], c TakeStock) (kernel.Decision, error) {
	if stock := s.State().Stock; stock < c.Quantity {
		return kernel.Reject(CodeOutOfStock, "%d in stock, %d asked for", stock, c.Quantity), nil
	}
	return kernel.Events(StockTaken(c)), nil
}
