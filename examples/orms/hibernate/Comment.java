import javax.persistence.Column;
import javax.persistence.Entity;
import javax.persistence.Id;
import javax.persistence.JoinColumn;
import javax.persistence.ManyToOne;
import javax.persistence.Table;

/** Its ID is taken before, from snowflake_nextvals, so that many rows go to the server as one batch. */
@Entity
@Table(name = "comments")
class Comment {
    @Id
    @Column(columnDefinition = "snowflake")
    Long id;

    @ManyToOne
    @JoinColumn(name = "post_id")
    Post post;

    String body;

    Comment() {}

    Comment(Long id, Post post, String body) {
        this.id = id;
        this.post = post;
        this.body = body;
    }
}
