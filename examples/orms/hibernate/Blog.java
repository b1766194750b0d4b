import java.sql.Timestamp;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Hibernate: the INSERT returns the ID, or the ID is taken from a batch before. */
public class Blog {
    /** Of shard 5, generated at noon on 2024-05-01. */
    static final long OLD_ID = 1896919282483208199L;

    public static void main(String[] args) {
        // The driver supports only TCP.
        String url = String.format("jdbc:postgresql://%s:%s/%s?sslmode=disable",
                env("PGHOST"), env("PGPORT"), env("PGDATABASE"));
        SessionFactory sessions = new Configuration()
                .setProperty("hibernate.connection.url", url)
                .setProperty("hibernate.connection.username", env("PGUSER"))
                .setProperty("hibernate.connection.pool_size", "1")
                .setProperty("hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect")
                .setProperty("hibernate.jdbc.batch_size", "50")
                // A migration has created the tables as the entities declare them.
                .setProperty("hibernate.hbm2ddl.auto", "validate")
                .addAnnotatedClass(Post.class)
                .addAnnotatedClass(Comment.class)
                .buildSessionFactory();
        Session session = sessions.openSession();
        manyRowsOneByOne(session);
        aParentAndItsChildren(session);
        rowsOfATime(session);
        session.close();
        sessions.close();
        System.out.println("Hibernate: ids arrive through RETURNING");
    }

    static void manyRowsOneByOne(Session session) {
        session.beginTransaction();
        List<Long> ids = new ArrayList<>();
        ids.add(save(session, new Post("first")));
        for (int i = 0; i < 200; i++) {
            ids.add(save(session, new Post("bulk " + i)));
        }
        session.getTransaction().commit();
        expect(session.createQuery("select id from Post order by id").list(), ids);
    }

    static Long save(Session session, Post post) {
        session.persist(post);
        return post.id;
    }

    static void aParentAndItsChildren(Session session) {
        session.beginTransaction();
        Post post = new Post("parent");
        session.persist(post);
        Iterator<Long> ids = nextIds(session, "comments_id_seq", 2).iterator();
        session.persist(new Comment(ids.next(), post, "one"));
        session.persist(new Comment(ids.next(), post, "two"));
        session.getTransaction().commit();
        session.clear();

        List<String> found = new ArrayList<>();
        for (Object row : session.createQuery("from Comment order by id").list()) {
            Comment comment = (Comment) row;
            expect(session.get(Comment.class, comment.id), comment);
            found.add(comment.body + " of " + comment.post.body);
        }
        expect(found, List.of("one of parent", "two of parent"));
    }

    /** This many IDs, for rows that are written later. */
    static List<Long> nextIds(Session session, String sequence, int count) {
        List<Long> ids = new ArrayList<>();
        String query = "select id from snowflake_nextvals(:sequence, 5, :count) as id";
        for (Object id : session.createSQLQuery(query)
                .setString("sequence", sequence)
                .setInteger("count", count)
                .list()) {
            ids.add(((Number) id).longValue());
        }
        return ids;
    }

    static void rowsOfATime(Session session) {
        session.beginTransaction();
        String insert = "insert into posts (id, body) values (:id, 'imported')";
        session.createSQLQuery(insert).setLong("id", OLD_ID).executeUpdate();
        session.getTransaction().commit();

        Timestamp day = Timestamp.from(Instant.parse("2024-05-01T00:00:00Z"));
        Timestamp nextDay = Timestamp.from(Instant.parse("2024-05-02T00:00:00Z"));
        String ofThatDay = "select id from Post where snowflake_between(id, :since, :until) = true";
        expect(session.createQuery(ofThatDay)
                .setTimestamp("since", day)
                .setTimestamp("until", nextDay)
                .list(), List.of(OLD_ID));

        String sinceThen = "select count(*) from Post where id >= snowflake_min_id(:since)";
        expect(session.createQuery(sinceThen).setTimestamp("since", nextDay).uniqueResult(), 202L);
    }

    static void expect(Object found, Object expected) {
        if (!Objects.equals(found, expected)) {
            throw new AssertionError("found " + found + ", expected " + expected);
        }
    }

    static String env(String name) {
        return Objects.requireNonNull(System.getenv(name), name + " is not set");
    }
}
