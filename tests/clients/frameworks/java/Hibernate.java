// Hibernate over Connector/J: its own definitions, small models with associations, HQL, criteria, locks, versions, native queries.

import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.Lob;
import jakarta.persistence.LockModeType;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

public final class Hibernate {
    public enum Kind { SMALL, LARGE }

    @Entity(name = "Author")
    @Table(name = "authors", indexes = @Index(name = "by_name", columnList = "name"))
    public static class Author {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) public Long id;
        @Column(nullable = false, length = 40) public String name;
        public LocalDate born;
        @Version public int version;
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true) @OrderBy("title")
        public List<Book> books = new ArrayList<>();
    }

    @Entity(name = "Book")
    @Table(name = "books")
    public static class Book {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) public Long id;
        @Column(unique = true) public String title;
        @Column(precision = 10, scale = 2) public BigDecimal price;
        @Enumerated(EnumType.STRING) public Kind kind;
        public boolean printed;
        public UUID code;
        public Instant sold;
        public LocalDateTime noted;
        @Lob public String text;
        @Lob public byte[] cover;
        @ManyToOne(fetch = FetchType.LAZY, optional = false) public Author author;
        @ElementCollection public Set<String> words = new TreeSet<>();
        @ManyToMany public List<Shelf> shelves = new ArrayList<>();
    }

    @Entity(name = "Shelf")
    @Table(name = "shelves")
    public static class Shelf {
        @Id @GeneratedValue(strategy = GenerationType.TABLE) public Integer id;
        public String place;
    }

    private static Book book(Author author, String title, String price, Shelf... shelves) {
        Book book = new Book();
        book.author = author;
        book.title = title;
        book.price = new BigDecimal(price);
        book.kind = title.length() > 5 ? Kind.LARGE : Kind.SMALL;
        book.printed = title.length() % 2 == 0;
        book.code = UUID.nameUUIDFromBytes(title.getBytes());
        book.sold = Instant.parse("2024-02-29T12:34:56.123456Z");
        book.noted = LocalDateTime.of(2024, 2, 29, 12, 0);
        book.text = "text of " + title;
        book.cover = new byte[] {0, 1, -1};
        book.words.addAll(List.of("a", title));
        book.shelves.addAll(List.of(shelves));
        author.books.add(book);
        return book;
    }

    public static void main(String[] args) throws Exception {
        String server = "jdbc:mysql://" + Steps.HOST + ":" + Steps.PORT;
        String options = "?user=root&password=&allowPublicKeyRetrieval=true";
        try (Connection admin = DriverManager.getConnection(server + "/" + options); Statement statement = admin.createStatement()) {
            statement.execute("CREATE DATABASE hibernate_suite");
        }
        String url = server + "/hibernate_suite" + options;
        SessionFactory[] made = new SessionFactory[1];
        Steps.step("definitions", () -> {
            made[0] = factory(url, "create");
            return "made";
        });
        if (made[0] == null) {
            return;
        }
        try (SessionFactory factory = made[0]) {
            run(factory);
        }
        Steps.step("validated", () -> {
            factory(url, "validate").close();
            return "valid";
        });
        Steps.step("updated", () -> {
            factory(url, "update").close();
            return "up to date";
        });
    }

    private static SessionFactory factory(String url, String definitions) {
        Configuration configuration = new Configuration();
        configuration.setProperty("hibernate.connection.url", url);
        configuration.setProperty("hibernate.hbm2ddl.auto", definitions);
        configuration.setProperty("hibernate.jdbc.time_zone", "UTC");
        configuration.addAnnotatedClass(Author.class).addAnnotatedClass(Book.class).addAnnotatedClass(Shelf.class);
        return configuration.buildSessionFactory();
    }

    private static void run(SessionFactory factory) {
        Steps.step("persist", () -> factory.fromTransaction(session -> {
            Shelf shelf = new Shelf();
            shelf.place = "left";
            session.persist(shelf);
            for (String name : List.of("Ann", "Bob")) {
                Author author = new Author();
                author.name = name;
                author.born = LocalDate.of(1970, 1, name.length());
                book(author, name + " one", "10.50", shelf);
                book(author, name, "7.25");
                session.persist(author);
            }
            session.flush();
            return session.createSelectionQuery("select count(*) from Book", Long.class).getSingleResult();
        }));
        Steps.step("find", () -> factory.fromTransaction(session -> {
            Author author = session.find(Author.class, 1L);
            Book first = author.books.get(0);
            return List.of(author.name, author.born, author.books.size(), first.title, first.price, first.kind, first.printed,
                first.code, first.sold, first.noted, first.text, first.cover, new ArrayList<>(first.words), first.shelves.size());
        }));
        Steps.step("hql", () -> factory.fromSession(session -> session.createSelectionQuery(
            "select a.name, count(b), sum(b.price), max(b.title) from Author a left join a.books b where b.price > :least "
            + "group by a.name having count(b) > 0 order by a.name", Object[].class).setParameter("least", new BigDecimal("1")).list()));
        Steps.step("functions", () -> factory.fromSession(session -> session.createSelectionQuery(
            "select upper(b.title), length(b.title), concat(b.title, '!'), year(b.sold), extract(month from b.noted), cast(b.price as string), "
            + "coalesce(b.text, '-'), case when b.printed then 1 else 0 end, mod(b.id, 2), locate('o', b.title) from Book b order by b.id",
            Object[].class).setMaxResults(2).setFirstResult(1).list()));
        Steps.step("members", () -> factory.fromSession(session -> session.createSelectionQuery(
            "select b.title from Book b where 'Ann' member of b.words or b.shelves is not empty order by b.title", String.class).list()));
        Steps.step("windows and sets", () -> factory.fromSession(session -> session.createSelectionQuery(
            "select b.title, rank() over (partition by b.author.id order by b.price desc) from Book b order by b.title", Object[].class).list()));
        Steps.step("criteria", () -> factory.fromSession(session -> {
            var builder = session.getCriteriaBuilder();
            var query = builder.createQuery(Book.class);
            var root = query.from(Book.class);
            query.where(builder.and(builder.like(root.get("title"), "%n%"), builder.isTrue(root.get("printed")))).orderBy(builder.asc(root.get("title")));
            return session.createQuery(query).list().stream().map(found -> found.title).toList();
        }));
        Steps.step("update and version", () -> factory.fromTransaction(session -> {
            Author author = session.find(Author.class, 2L);
            author.name = "Robert";
            session.flush();
            return List.of(author.version, session.createMutationQuery("update Book set price = price * 2 where kind = LARGE").executeUpdate());
        }));
        Steps.step("lock", () -> factory.fromTransaction(session ->
            session.find(Author.class, 1L, LockModeType.PESSIMISTIC_WRITE).name));
        Steps.step("stale", () -> {
            Author stale = factory.fromSession(session -> session.find(Author.class, 1L));
            factory.inTransaction(session -> session.find(Author.class, 1L).name = "Anna");
            stale.name = "Annie";
            try {
                factory.inTransaction(session -> session.merge(stale));
            } catch (RuntimeException expected) {
                return expected.getClass().getSimpleName();
            }
            return "was not refused";
        });
        Steps.step("orphans", () -> factory.fromTransaction(session -> {
            session.find(Author.class, 1L).books.remove(0);
            session.flush();
            return session.createSelectionQuery("select count(*) from Book", Long.class).getSingleResult();
        }));
        Steps.step("unique", () -> {
            try {
                factory.inTransaction(session -> book(session.find(Author.class, 2L), "Bob", "1"));
            } catch (RuntimeException expected) {
                return expected.getClass().getSimpleName();
            }
            return "was not refused";
        });
        Steps.step("native", () -> factory.fromSession(session ->
            session.createNativeQuery("SELECT title, price FROM books WHERE price > ?1 ORDER BY title", Object[].class).setParameter(1, 1).list()));
        Steps.step("delete", () -> factory.fromTransaction(session -> {
            session.remove(session.find(Author.class, 2L));
            session.flush();
            return session.createSelectionQuery("select count(*) from Book", Long.class).getSingleResult();
        }));
    }
}
